package trace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// TestProgramsKeepTheirPromises looks at every slice of programs: what it reads is there, earlier,
// and not too much, and no two operations have the same name.
func TestProgramsKeepTheirPromises(t *testing.T) {
	for _, c := range modelCases() {
		t.Run(c.name, func(t *testing.T) {
			p := c.program(t)
			names := map[string]bool{}
			for i := range p.Len() {
				op := p.Op(i)
				if names[op.Name()] {
					t.Errorf("two operations are named %q", op.Name())
				}
				names[op.Name()] = true
				for tile := range op.Tiles() {
					for slice := range op.Slices(tile) {
						if fault := badReads(p, i, op.Reads(tile, slice)); fault != "" {
							t.Fatalf("%s, tile %d, slice %d: %s", op.Name(), tile, slice, fault)
						}
					}
				}
			}
		})
	}
}

// badReads says what is wrong with what a slice of operation i reads.
func badReads(p Program, i uint32, reads []Read) string {
	if len(reads) > ReadsMax {
		return fmt.Sprintf("%d reads", len(reads))
	}
	for k, r := range reads {
		switch {
		case slices.Contains(reads[:k], r):
			return fmt.Sprintf("%v twice", r)
		case r.Source == Value && r.Op >= i:
			return fmt.Sprintf("%v, which is not earlier", r)
		case r.Source == Value && r.Index >= p.Op(r.Op).Tiles():
			return fmt.Sprintf("%v of %d tiles", r, p.Op(r.Op).Tiles())
		case r.Source != Value && len(reads) > 1:
			return fmt.Sprintf("%v and others", r)
		}
	}
	return ""
}

// hostile gives words that no honest computation makes: infinities, every kind of NaN, subnormal
// numbers, huge tokens.
func hostile(r *prng.Source, n int) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = uint32(r.Uint64())
		switch r.Uint64n(8) {
		case 0:
			words[i] |= 0x7f800000
		case 1:
			words[i] = uint32(r.Uint64n(2)<<31) | 0x7f800000
		case 2:
			words[i] &= 0x807fffff
		case 3:
			words[i] = uint32(r.Uint64n(100))
		case 4:
			words[i] = uint32(r.Uint64n(2) << 31)
		}
	}
	return words
}

// TestEveryOperationTakesAnyWords gives each kind of operation hostile words. A referee must not
// fall over what two liars agree on, and all referees must come to the same result, whatever their
// processors make of a NaN.
func TestEveryOperationTakesAnyWords(t *testing.T) {
	t.Parallel()
	source := prng.New(wire.Sum("entrain/test"), "hostile")
	r := &source
	var workers []*exact.Worker
	for _, k := range exact.Kernels() {
		workers = append(workers, exact.NewWorker(k))
	}
	for _, c := range modelCases() {
		p := c.program(t)
		params := c.cfg.Layout().Len()
		for _, i := range kinds(p) {
			op := p.Op(i)
			for range 8 {
				tile := uint32(r.Uint64n(uint64(op.Tiles())))
				slice := uint32(r.Uint64n(uint64(op.Slices(tile))))
				var acc []uint32
				if slice > 0 {
					acc = hostile(r, op.Words(tile, slice-1))
				}
				var in [][]uint32
				for _, read := range op.Reads(tile, slice) {
					n := c.sequence + 1
					switch read.Source {
					case Value:
						of := p.Op(read.Op)
						n = of.Words(read.Index, of.Slices(read.Index)-1)
					case Params:
						n = min(ChunkWords, params-int(read.Index)*ChunkWords)
					case Base:
						n = min(ChunkWords, len(c.base())-int(read.Index)*ChunkWords)
					}
					in = append(in, hostile(r, n))
				}
				before := make([][]uint32, len(in))
				for k := range in {
					before[k] = slices.Clone(in[k])
				}
				var first []uint32
				for k, w := range workers {
					out := op.Step(w, tile, slice, slices.Clone(acc), in)
					if k == 0 {
						first = out
					}
					if len(out) != op.Words(tile, slice) {
						t.Fatalf("%s: %d words, want %d", op.Name(), len(out), op.Words(tile, slice))
					}
					if !slices.Equal(out, first) {
						t.Fatalf("%s, tile %d, slice %d: two kernels differ", op.Name(), tile, slice)
					}
					for n := range in {
						if !slices.Equal(in[n], before[n]) {
							t.Fatalf("%s writes to what it reads", op.Name())
						}
					}
				}
			}
		}
	}
}

// TestTensorsAreLoadedAcrossChunks loads tensors whose tiles lie in several chunks, in more than
// one slice can read too.
func TestTensorsAreLoadedAcrossChunks(t *testing.T) {
	params := make([]float32, 24*ChunkWords+77)
	for i := range params {
		params[i] = float32(i)
	}
	w := exact.NewWorker(exact.Kernels()[0])
	for _, c := range []struct {
		offset, slices int
		grid           grid
	}{
		{5, 1, matrix(40, 60)},
		{ChunkWords - 7, 1, matrix(33, 40)},
		{77, 1, matrix(64, 9000)},
		{ChunkWords / 2, 3, matrix(33, 40000)},
		{3, 1, grid{rows: dim{5, 7}, cols: whole(20011)}},
		{3, 2, grid{rows: whole(5), cols: dim{3, 70001}}},
	} {
		p := newPieces(Params, c.offset, c.grid)
		j := &join{p, fixed}
		if p.most == 1 {
			if p.tiles() != c.grid.tiles() {
				t.Errorf("%+v: a tensor in one chunk has %d pieces for %d tiles", c, p.tiles(), c.grid.tiles())
			}
			continue
		}
		if got := int(j.slices(0)); got != c.slices {
			t.Errorf("%+v: %d slices, want %d", c, got, c.slices)
		}
		for tile := range c.grid.tiles() {
			var acc []uint32
			for slice := range j.slices(tile) {
				var in [][]uint32
				for _, r := range j.reads(spot{}, tile, slice) {
					var words [][]uint32
					for _, from := range p.reads(spot{}, r.Index, 0) {
						words = append(words, chunk(params, from.Index))
					}
					in = append(in, p.step(spot{}, w, r.Index, 0, nil, words))
				}
				acc = j.step(spot{}, w, tile, slice, acc, in)
			}
			var want []uint32
			p.runs(tile, func(_, from, to int) { want = append(want, Bits(params[from:to])...) })
			if !slices.Equal(acc, want) {
				t.Fatalf("%+v: tile %d differs", c, tile)
			}
		}
	}
}

// TestGridsAreNumbered goes there and back for every tile.
func TestGridsAreNumbered(t *testing.T) {
	var grids []grid
	for n := 1; n < 200; n += 13 {
		grids = append(grids, grid{rows: whole(n), cols: whole(n), causal: true}, matrix(n, 3*n), grid{rows: dim{n, 5}, cols: dim{3, n}})
	}
	for _, g := range grids {
		words := 0
		for tile := range g.tiles() {
			r, c := g.place(tile)
			if g.tile(r, c) != tile || g.causal && c >= reach(r, g.cols.tiles()) {
				t.Fatalf("%+v: tile %d is at %d, %d, which is %d", g, tile, r, c, g.tile(r, c))
			}
			words += g.words(tile)
		}
		if !g.causal && words != g.rows.len()*g.cols.len() {
			t.Errorf("%+v: %d words", g, words)
		}
		for x := range g.cols.len() {
			if from, to := g.cols.span(g.cols.tile(x)); x < from || x >= to {
				t.Fatalf("%+v: column %d is not in its tile", g, x)
			}
		}
	}
}

func TestWhatCannotBeTracedIsRefused(t *testing.T) {
	good := modelCases()[0]
	for _, c := range []struct {
		name, want string
		change     func(s *Setup, sequences *uint32)
	}{
		{"no model", "model", func(s *Setup, _ *uint32) { s.Model = llama.Config{} }},
		{"no tokens", "sequences of 0 tokens", func(s *Setup, _ *uint32) { s.Sequence = 0 }},
		{"beyond the context", "sequences of 65 tokens", func(s *Setup, _ *uint32) { s.Sequence = 65 }},
		{"sequences too long for evidence", "tokens", func(s *Setup, _ *uint32) { s.Model.Context, s.Sequence = 1<<20, SequenceMax+1 }},
		{"no sequences", "at least one sequence", func(_ *Setup, n *uint32) { *n = 0 }},
		{"too many heads", "operations", func(s *Setup, _ *uint32) { s.Model.Heads, s.Model.Layers = 1024, 100 }},
		{"too many sequences", "operations", func(_ *Setup, n *uint32) { *n = 1<<32 - 1 }},
	} {
		setup, sequences := good.setup(), uint32(1)
		c.change(&setup, &sequences)
		_, err := newProgram(setup, sequences, newPlainTail(good.cfg))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestEvidenceOfLargeModelsFits computes how large evidence is for models that no test can trace.
func TestEvidenceOfLargeModelsFits(t *testing.T) {
	for _, preset := range []string{"nano", "124m", "1b"} {
		cfg, err := llama.Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		const sequences = 16
		p, err := newProgram(Setup{cfg, cfg.Context}, sequences, newPlainTail(cfg))
		if err != nil {
			t.Fatal(err)
		}
		model := p.Len() - 1
		path := func(op, tile uint32) int {
			o := p.Op(op)
			return 4*int(bisect.Depth(o.Slices(tile))+bisect.Depth(o.Tiles())+bisect.Depth(p.Len())) + 2
		}
		most, tiles, slices := 0, uint8(0), uint8(0)
		for op := p.(*steps).base() - uint32(len(p.(*steps).sequence)); op < model; op++ { // the last sequence
			o := p.Op(op)
			tile := o.Tiles() / 2
			slice := o.Slices(tile) - 1
			bytes := 0
			if slice > 0 {
				bytes += 4*o.Words(tile, slice-1) + 32*path(op, tile)
			}
			for _, r := range o.Reads(tile, slice) {
				if r.Source == Value {
					of := p.Op(r.Op)
					bytes += 4*of.Words(r.Index, of.Slices(r.Index)-1) + 32*path(r.Op, r.Index)
				}
			}
			most = max(most, bytes)
			tiles, slices = max(tiles, bisect.Depth(o.Tiles())), max(slices, bisect.Depth(o.Slices(tile)))
		}
		t.Logf("%s, %d sequences of %d: %d operations, at most %d bytes of evidence from values, at most %d, %d and %d reveals of each side",
			preset, sequences, cfg.Context, p.Len(), most, bisect.Depth(p.Len()), tiles, slices)
		if most > 48<<10 {
			t.Errorf("%s: %d bytes of evidence", preset, most)
		}
	}
	if chunk := 4*ChunkWords + 32*64; chunk > evidenceBytesMax {
		t.Errorf("a chunk of parameters with its proof, %d bytes, does not fit evidence of %d", chunk, evidenceBytesMax)
	}
}

func TestLeavesAreThoseOfBisect(t *testing.T) {
	source := prng.New(wire.Sum("entrain/test"), "leaves")
	for _, n := range []int{0, 1, 5, 1024} {
		words := hostile(&source, n)
		if leaf(hashOp{}, words[:min(n, 8)]) == bisect.Leaf(words[:min(n, 8)]) {
			t.Error("a Leafer's hash is bisect's")
		}
		if leaf(operation{}, words) != bisect.Leaf(words) {
			t.Errorf("the hash of %d words is not bisect's", n)
		}
	}
}
