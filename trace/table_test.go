package trace

import (
	"context"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

// tabledCase returns the program of a case's step up to its gradient, and the same by a table.
func (c modelCase) tabled(t testing.TB) (plain, table Program, bytes []byte) {
	t.Helper()
	m, err := NewModel(c.setup())
	if err != nil {
		t.Fatal(err)
	}
	layout := c.cfg.Layout()
	tails, err := NewGradientTails(layout)
	if err != nil {
		t.Fatal(err)
	}
	commitment := dispute.Commitment{Round: 7, Member: 3, Payload: wire.Sum("test/payload")}
	if plain, err = m.Program(uint32(c.sequences), tails.Tail(commitment)); err != nil {
		t.Fatal(err)
	}
	bytes = m.AppendTable(nil, layout)
	table, bad := Tabled(bytes, uint32(c.sequences), func(g *GradientTails) Tail { return g.Tail(commitment) })
	if bad != wire.OK {
		t.Fatal(bad)
	}
	return plain, table, bytes
}

// TestATableHoldsTheProgram compares all that a referee asks of a program with what its table says,
// and its values where little is computed at a time.
func TestATableHoldsTheProgram(t *testing.T) {
	tried := 0
	for _, c := range modelCases() {
		t.Run(c.name, func(t *testing.T) {
			plain, table, bytes := c.tabled(t)
			tried++
			if plain.Len() != table.Len() {
				t.Fatalf("%d operations, want %d", table.Len(), plain.Len())
			}
			t.Logf("%d operations of a sequence and before in %d bytes", plain.Len(), len(bytes))
			for op := range plain.Len() {
				a, b := plain.Op(op), table.Op(op)
				if a.Tiles() != b.Tiles() {
					t.Fatalf("%s has %d tiles, want %d", a.Name(), b.Tiles(), a.Tiles())
				}
				for tile := range a.Tiles() {
					if a.Slices(tile) != b.Slices(tile) {
						t.Fatalf("%s has %d slices, want %d", a.Name(), b.Slices(tile), a.Slices(tile))
					}
					for slice := range a.Slices(tile) {
						if a.Words(tile, slice) != b.Words(tile, slice) || !slices.Equal(a.Reads(tile, slice), b.Reads(tile, slice)) {
							t.Fatalf("%s reads or makes something else", a.Name())
						}
					}
				}
			}
			pool := exact.NewPool(1)
			defer pool.Close()
			trace := func(p Program) wire.Hash {
				r, err := Run(context.Background(), pool, p, c.sources())
				if err != nil {
					t.Fatal(err)
				}
				return r.Root()
			}
			if want := trace(plain); trace(table) != want || trace(interrupted{plain}) != want {
				t.Error("another trace")
			}
		})
	}
	if tried < 20 {
		t.Errorf("only %d cases", tried)
	}
}

// interrupted computes each slice a little at a time.
type interrupted struct{ Program }

func (p interrupted) Op(t uint32) Op {
	if l, ok := p.Program.Op(t).(Leafer); ok {
		return l
	}
	return interruptedOp{p.Program.Op(t)}
}

type interruptedOp struct{ Op }

func (o interruptedOp) Step(w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	p := exact.Progress{Words: make([]float32, ProgressWords)}
	defer w.Resume(nil)
	for {
		p.Left = 3
		w.Resume(&p)
		if out := o.Op.Step(w, tile, slice, slices.Clone(acc), in); !p.Stopped {
			return out
		}
	}
}
