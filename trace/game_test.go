package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// openSources opens what a test proves: the words themselves, which must be those of the sources.
type openSources struct{ m *machine }

func (o openSources) Open(r Read, evidence []byte) ([]uint32, error) {
	words := o.m.words(r, nil)
	if !bytes.Equal(evidence, appendWords(nil, words)) {
		return nil, errors.New("not what was agreed")
	}
	return words, nil
}

// game is a dispute between two traces of a program, as a coordinator plays it.
type game struct {
	p                Program
	accused, accuser *Trace
	open             Opener

	op, tile, slice uint32
	leaves          [2]wire.Hash // of the slice at which they differ
	moves           int
	evidence        []byte
	judging         time.Duration
}

// descend goes from two different nodes over n leaves to the first different leaf.
func (d *game) descend(n uint32, nodes [2]wire.Hash, children func(t *Trace, depth uint8, index uint32) ([bisect.Fan]wire.Hash, error)) (
	uint32, [2]wire.Hash, error) {
	index := uint32(0)
	for depth := bisect.Depth(n); depth > 0; depth-- {
		var shown [2][bisect.Fan]wire.Hash
		for side, t := range []*Trace{d.accused, d.accuser} {
			c, err := children(t, depth, index)
			if err != nil {
				return 0, nodes, err
			}
			if bisect.Node(&c) != nodes[side] {
				return 0, nodes, fmt.Errorf("side %d shows others than the children of its node", side)
			}
			shown[side] = c
			d.moves++
		}
		first := 0
		for first < bisect.Fan-1 && shown[0][first] == shown[1][first] {
			first++
		}
		index, nodes = index*bisect.Fan+uint32(first), [2]wire.Hash{shown[0][first], shown[1][first]}
	}
	if index >= n {
		return 0, nodes, fmt.Errorf("they differ at leaf %d of %d", index, n)
	}
	return index, nodes, nil
}

// find finds the slice at which the two differ.
func (d *game) find(ctx context.Context) (err error) {
	nodes := [2]wire.Hash{d.accused.Root(), d.accuser.Root()}
	d.op, nodes, err = d.descend(d.p.Len(), nodes, func(t *Trace, depth uint8, index uint32) ([bisect.Fan]wire.Hash, error) {
		return t.OpChildren(depth, index), nil
	})
	if err != nil {
		return err
	}
	op := d.p.Op(d.op)
	d.tile, nodes, err = d.descend(op.Tiles(), nodes, func(t *Trace, depth uint8, index uint32) ([bisect.Fan]wire.Hash, error) {
		return t.TileChildren(ctx, d.op, depth, index)
	})
	if err != nil {
		return err
	}
	d.slice, d.leaves, err = d.descend(op.Slices(d.tile), nodes, func(t *Trace, depth uint8, index uint32) ([bisect.Fan]wire.Hash, error) {
		return t.SliceChildren(ctx, d.op, d.tile, depth, index)
	})
	return err
}

// judge reports whether the accused is right.
func (d *game) judge(ctx context.Context) (bool, error) {
	var err error
	if d.evidence, err = d.accuser.Evidence(ctx, d.op, d.tile, d.slice); err != nil {
		return false, err
	}
	began := time.Now()
	truth, err := Judge(d.p, d.open, d.op, d.tile, d.slice, d.accuser.Root(), d.evidence)
	d.judging = time.Since(began)
	switch {
	case err != nil:
		return false, err
	case truth == d.leaves[0]:
		return true, nil
	case truth == d.leaves[1]:
		return false, nil
	}
	return false, errors.New("the truth is neither's")
}

// gameProgram is the program of a case with the tail of codec/distro.
func gameProgram(t testing.TB, c modelCase) Program {
	t.Helper()
	layout := c.cfg.Layout()
	codec, err := distro.New(layout, distro.Config{Block: 16, TopK: 4, Decay: .9, ClipNorm: .1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tail, err := NewTail(codec, layout, .01, Share{Run: wire.Sum("entrain/test"), Round: 7, Member: 3})
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProgram(c.setup(), uint32(c.sequences), tail)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// gameCase is a share small enough to be traced hundreds of times, in which there are all kinds of
// operations and most chains have several slices.
func gameCase() modelCase {
	return modelCase{"game", llama.Config{Vocab: 260, Hidden: 100, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 10, FFN: 115, Context: 102,
		Theta: 10000, Eps: 1e-5, Tied: true}, 102, 2, 0}
}

// adapterCase is one of adapters, in which all chains over them have several slices.
func adapterCase() modelCase {
	c := gameCase()
	c.name, c.sequence, c.sequences = "game of adapters", 4, 1
	c.cfg.LoRA = llama.LoRA{Rank: 97, Alpha: 7, Targets: 1<<4 | 1<<6}
	return c
}

func (c modelCase) allSources() Sources {
	s := c.sources()
	s.State = make([]float32, c.cfg.Layout().Len())
	source := prng.New(wire.Sum("entrain/test", []byte(c.name)), "state")
	for i := range s.State {
		s.State[i] = float32(int64(source.Uint64n(1<<20))-1<<19) * 0x1p-30
	}
	s.Prove = func(r Read) ([]byte, error) {
		m := machine{src: s, read: map[uint32][]uint32{}}
		if r.Source == Tokens {
			m.read[r.Index], _ = s.Tokens(r.Index)
		}
		return appendWords(nil, m.words(r, nil)), nil
	}
	return s
}

// kinds returns one operation of each kind, the last in the program.
func kinds(p Program) (ops []uint32) {
	seen := map[string]int{}
	for t := range p.Len() {
		name := p.Op(t).Name()
		if o, ok := p.Op(t).(operation); ok {
			name = o.label.what
			switch o.kernel.(type) {
			case *pieces, *join, *regroup: // the same for every tensor
				name = fmt.Sprintf("%T", o.kernel)
			}
		}
		if at, ok := seen[name]; ok {
			ops[at] = t
			continue
		}
		seen[name] = len(ops)
		ops = append(ops, t)
	}
	return ops
}

// longest returns the tile that takes the most slices, the last of those that have words.
func longest(o Op) (tile uint32) {
	for i := range o.Tiles() {
		if o.Slices(i) >= o.Slices(tile) && o.Words(i, o.Slices(i)-1) > 0 {
			tile = i
		}
	}
	return tile
}

// TestTheRefereeNamesTheLiar lies once in each kind of operation, by one bit of one slice, and
// follows through: all that comes later is computed from the lie. Whether the liar is the accused
// or the accuser, the referee names it.
func TestTheRefereeNamesTheLiar(t *testing.T) {
	t.Parallel()
	for c, want := range map[modelCase]int{gameCase(): 12, adapterCase(): 9} {
		t.Run(c.name, func(t *testing.T) { testLiars(t, c, want) })
	}
}

// everything computes all values of a trace.
func (t *Trace) everything(ctx context.Context) (map[uint32]*result, error) {
	all, keep := make([]bool, t.p.Len()), make([]uint32, t.p.Len())
	for i := range all {
		all[i], keep[i] = true, uint32(i)
	}
	return t.execute(ctx, all, keep, func(uint32, *result) {})
}

// lying is the trace of a member that lies in operation op. It computes what the lie changes; the
// rest is as in the honest trace, which has these values.
func (t *Trace) lying(values map[uint32]*result, op uint32, lie func(op, tile, slice uint32, words []uint32)) *Trace {
	liar := &Trace{machine: t.machine, ops: slices.Clone(t.ops)}
	liar.lie = lie
	values = maps.Clone(values)
	changed := map[uint32]bool{op: true}
	for at := op; at < t.p.Len(); at++ {
		if changed[at] || slices.ContainsFunc(t.uses[at], func(u uint32) bool { return changed[u] }) {
			changed[at], values[at] = true, liar.make(at, values, false)
			liar.ops[at] = bisect.Root(values[at].leaves)
		}
	}
	liar.root = bisect.Root(liar.ops)
	return liar
}

// testLiars plays the games of a case, whose program has operations of a number of types.
func testLiars(t *testing.T, c modelCase, types int) {
	pool := exact.NewPool(1)
	defer pool.Close()
	ctx := context.Background()
	p, src := gameProgram(t, c), c.allSources()
	honest, err := Run(ctx, pool, p, src)
	if err != nil {
		t.Fatal(err)
	}
	values, err := honest.everything(ctx)
	if err != nil {
		t.Fatal(err)
	}
	source := prng.New(wire.Sum("entrain/test"), "lies")
	var most, mostInside, slowest game
	ops := kinds(p)
	kernels := map[string]bool{}
	for _, op := range ops {
		o := p.Op(op)
		if o, ok := o.(operation); ok {
			kernels[fmt.Sprintf("%T", o.kernel)] = true
		}
		tile := longest(o)
		slice := uint32(source.Uint64n(uint64(o.Slices(tile))))
		word, bit := source.Uint64(), source.Uint64n(32)
		liar := honest.lying(values, op, func(at, ofTile, ofSlice uint32, words []uint32) {
			if at == op && ofTile == tile && ofSlice == slice && len(words) > 0 {
				words[word%uint64(len(words))] ^= 1 << bit
			}
		})
		honest.opened = opened{ok: true, op: op, value: values[op], inputs: values} // the liar opens it as members do
		for _, accuses := range []bool{false, true} {
			d := game{p: p, accused: liar, accuser: honest, open: openSources{&honest.machine}}
			if accuses {
				d.accused, d.accuser = honest, liar
			}
			if err := d.find(ctx); err != nil {
				t.Fatalf("%s: %v", o.Name(), err)
			}
			if d.op != op || d.tile != tile || d.slice != slice {
				t.Errorf("%s: they differ at %d, %d, %d; the lie is at %d, %d, %d", o.Name(), d.op, d.tile, d.slice, op, tile, slice)
			}
			right, err := d.judge(ctx)
			if err != nil {
				t.Fatalf("%s: %v", o.Name(), err)
			}
			if right != accuses {
				t.Errorf("%s: the liar wins, accuser %v", o.Name(), accuses)
			}
			if len(d.evidence) > len(most.evidence) {
				most = d
			}
			if reads := o.Reads(tile, slice); len(d.evidence) > len(mostInside.evidence) && (len(reads) == 0 || reads[0].Source == Value) {
				mostInside = d
			}
			if d.judging > slowest.judging {
				slowest = d
			}
		}
	}
	if len(kernels) != types {
		t.Errorf("the program has operations of %d types only: %v", len(kernels), kernels)
	}
	t.Logf("%d kinds of operations among %d; at most %d bytes of evidence (%s), %d where nothing is read from outside (%s), and %v of judging (%s); %d reveals", len(ops), p.Len(),
		len(most.evidence), p.Op(most.op).Name(), len(mostInside.evidence), p.Op(mostInside.op).Name(), slowest.judging, p.Op(slowest.op).Name(),
		mostInside.moves)
}

// A member that learns a token which the data masks is convicted: by the data's proof, the tokens
// that it trained on are not the share's.
func TestWhoLearnsAMaskedTokenIsConvicted(t *testing.T) {
	pool := exact.NewPool(1)
	defer pool.Close()
	for _, name := range []string{"a mask", "8 bits, a mask, tied"} {
		i := slices.IndexFunc(modelCases(), func(c modelCase) bool { return c.name == name })
		c := modelCases()[i]
		p, src := gameProgram(t, c), c.allSources()
		honest, err := Run(t.Context(), pool, p, src)
		if err != nil {
			t.Fatal(err)
		}
		cheat := src
		cheat.Tokens = func(i uint32) ([]uint32, error) {
			tokens, err := src.Tokens(i)
			tokens = slices.Clone(tokens)
			at := slices.IndexFunc(tokens, func(t uint32) bool { return t&llama.Masked != 0 })
			tokens[at] &^= llama.Masked
			return tokens, err
		}
		liar, err := Run(t.Context(), pool, p, cheat)
		if err != nil {
			t.Fatal(err)
		}
		d := game{p: p, accused: liar, accuser: honest, open: openSources{&honest.machine}}
		if err := d.find(t.Context()); err != nil {
			t.Fatal(err)
		}
		if right, err := d.judge(t.Context()); err != nil || right || p.Op(d.op).Name() != "sequence 0, tokens" {
			t.Errorf("%s: at %q the referee says that the accused is right: %v, %v", name, p.Op(d.op).Name(), right, err)
		}
	}
}
