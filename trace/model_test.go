package trace

import (
	"context"
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

// modelCase is a share of a small model.
type modelCase struct {
	name      string
	cfg       llama.Config
	sequence  int
	sequences int
	scale     float32 // multiplies the parameters, 0 for 1
}

// modelCases have sizes that tiles divide and sizes that they do not, on either side of one tile,
// of one block of queries, of a chunk and of what one slice takes; and parameters which make zeros
// of either sign and subnormal numbers of what is computed.
func modelCases() []modelCase {
	cfg := func(vocab, hidden, layers, heads, kv, dim, ffn, context int, tied bool) llama.Config {
		return llama.Config{Vocab: vocab, Hidden: hidden, Layers: layers, Heads: heads, KVHeads: kv, HeadDim: dim, FFN: ffn, Context: context,
			Theta: 10000, Eps: 1e-5, Tied: tied}
	}
	eight := func(c llama.Config) llama.Config {
		c.Numerics = llama.Exact8
		return c
	}
	return []modelCase{
		{"tiles that fit", cfg(64, 64, 2, 2, 1, 32, 96, 64, false), 64, 2, 0},
		{"odd sizes", cfg(61, 37, 2, 3, 1, 10, 45, 50, false), 41, 3, 0},
		{"odd sizes, tied", cfg(101, 37, 1, 2, 2, 6, 45, 120, true), 99, 3, 0},
		{"heads wider than a tile", cfg(300, 50, 1, 4, 2, 44, 70, 40, true), 33, 2, 0},
		{"several chunks and slices", cfg(700, 130, 1, 2, 1, 80, 130, 200, false), 170, 1, 0},
		{"probabilities that vanish", cfg(70, 32, 1, 2, 1, 16, 40, 200, false), 140, 2, 25},
		{"values that vanish", cfg(70, 32, 1, 2, 1, 16, 40, 200, true), 140, 2, 1e-19},
		{"biases", with(cfg(61, 37, 2, 4, 2, 10, 45, 80, true), func(c *llama.Config) { c.Bias = true }), 71, 3, 0},
		{"norms of heads", with(cfg(61, 37, 2, 4, 2, 44, 45, 80, false), func(c *llama.Config) { c.QKNorm = true }), 71, 3, 0},
		{"a window", with(cfg(61, 37, 1, 4, 2, 10, 45, 150, false), func(c *llama.Config) { c.Window, c.Rope = 39, llama.Rope{Factor: 8, Low: 1, High: 4, Original: 64} }), 135, 2, 0},
		{"a narrow window, probabilities that vanish", with(cfg(70, 32, 1, 2, 1, 16, 40, 200, false), func(c *llama.Config) { c.Window = 3 }), 100, 1, 25},
		{"8 bits, biases", with(eight(cfg(101, 37, 1, 2, 2, 64, 96, 120, true)), func(c *llama.Config) { c.Bias = true }), 67, 2, 0},
		{"8 bits, norms of heads", with(eight(cfg(101, 37, 1, 2, 2, 32, 96, 120, false)), func(c *llama.Config) { c.QKNorm = true }), 67, 2, 0},
		{"adapters, tiles that fit", lora(cfg(64, 64, 2, 2, 1, 32, 96, 64, false), 32, llama.AllTargets), 64, 2, 0},
		{"adapters, odd sizes", lora(cfg(61, 37, 2, 3, 1, 10, 45, 50, true), 3, llama.AllTargets), 41, 3, 0},
		{"adapters of some, several chunks", lora(with(cfg(70, 160, 1, 2, 1, 44, 450, 80, false), func(c *llama.Config) { c.Bias = true }), 40, 1<<1|1<<6), 45, 2, 0},
		{"adapters, 8 bits, norms of heads", lora(with(eight(cfg(101, 37, 2, 2, 2, 32, 96, 120, false)), func(c *llama.Config) { c.QKNorm = true }), 5, 1<<0|1<<3|1<<5), 67, 2, 0},
		{"one token", cfg(2, 1, 1, 1, 1, 2, 1, 1, true), 1, 1, 0},
		{"8 bits, tiles that fit", eight(cfg(64, 64, 2, 2, 1, 32, 96, 64, false)), 64, 2, 0},
		{"8 bits, odd sizes", eight(cfg(301, 37, 2, 3, 1, 32, 64, 50, false)), 41, 3, 0},
		{"8 bits, odd sizes, tied", eight(cfg(101, 37, 1, 2, 2, 64, 96, 120, true)), 99, 3, 0},
		{"a mask", cfg(61, 37, 1, 2, 2, 6, 45, 50, false), 41, 2, 0},
		{"8 bits, a mask, tied", eight(cfg(101, 37, 1, 2, 2, 32, 32, 120, true)), 41, 2, 0},
		{"8 bits, several chunks and slices", eight(cfg(700, 130, 1, 2, 1, 96, 160, 200, false)), 170, 1, 0},
	}
}

func lora(c llama.Config, rank int, targets llama.Targets) llama.Config {
	c.LoRA = llama.LoRA{Rank: rank, Alpha: 7, Targets: targets}
	return c
}

func with(c llama.Config, change func(c *llama.Config)) llama.Config {
	change(&c)
	return c
}

func (c modelCase) setup() Setup { return Setup{Model: c.cfg, Sequence: c.sequence} }

// tokens are the sequences of the case, one after another.
func (c modelCase) tokens() []uint32 {
	source := prng.New(wire.Sum("entrain/test", []byte(c.name)), "tokens")
	all := make([]uint32, c.sequences*(c.sequence+1))
	for i := range all {
		all[i] = uint32(source.Uint64() % uint64(c.cfg.Vocab))
		if strings.Contains(c.name, "mask") && source.Uint64n(2) == 0 {
			all[i] |= llama.Masked
		}
	}
	return all
}

func (c modelCase) params() []float32 {
	params := llama.Init(c.cfg, wire.Sum("entrain/test", []byte(c.name)))
	if c.base() != nil { // B is 0 at first
		source := prng.New(wire.Sum("entrain/test", []byte(c.name)), "adapters")
		for i := range params {
			params[i] = float32(int64(source.Uint64n(1<<20))-1<<19) * 0x1p-22
		}
	}
	return params
}

// base returns the parameters of the frozen model, nil if there are no adapters.
func (c modelCase) base() []float32 {
	if c.cfg.LoRA == (llama.LoRA{}) {
		return nil
	}
	return llama.Init(c.cfg.Base(), wire.Sum("entrain/test", []byte(c.name)))
}

func (c modelCase) sources() Sources {
	all := c.tokens()
	return Sources{Params: c.params(), Base: c.base(), Tokens: func(i uint32) ([]uint32, error) {
		n := uint32(c.sequence + 1)
		return all[i*n : (i+1)*n], nil
	}}
}

// gradient is what package llama says.
func (c modelCase) gradient(t testing.TB, pool *exact.Pool) []float32 {
	t.Helper()
	m, err := llama.New(c.cfg.Base(), pool, c.sequences, c.sequence)
	if err != nil {
		t.Fatal(err)
	}
	own, params := c.params(), c.params()
	var a *llama.Adapted
	if base := c.base(); base != nil {
		if a, err = llama.NewAdapted(c.cfg, pool, base); err != nil {
			t.Fatal(err)
		}
		params = a.Merge(own)
	}
	grad := make([]float32, len(params))
	if _, err := m.Grad(params, grad, c.tokens(), c.sequences, c.sequence, c.sequences); err != nil {
		t.Fatal(err)
	}
	if a == nil {
		return grad
	}
	adapters := make([]float32, len(own))
	if err := a.Gradient(adapters, own, grad); err != nil {
		t.Fatal(err)
	}
	return adapters
}

// plainTail is a tail whose outcome is a hash of the gradient.
type plainTail struct{ tensors []Matrix }

func newPlainTail(cfg llama.Config) plainTail {
	var t plainTail
	for _, s := range cfg.Layout().Tensors() {
		t.tensors = append(t.tensors, matrixOf(s.Shape))
	}
	return t
}

func (p plainTail) Len() uint32 { return 1 }

func (p plainTail) Op(_, _ uint32, gradient func(tensor int) uint32) Op {
	var reads []Read
	for i, m := range p.tensors {
		for tile := range m.Tiles() {
			reads = append(reads, Read{Op: gradient(i), Index: tile})
		}
	}
	return hashOp{reads}
}

type hashOp struct{ reads []Read }

func (hashOp) Name() string          { return "outcome" }
func (hashOp) Tiles() uint32         { return 1 }
func (hashOp) Words(_, _ uint32) int { return 8 }
func (h hashOp) Slices(uint32) uint32 {
	return uint32(len(slices.Collect(slices.Chunk(h.reads, ReadsMax))))
}
func (h hashOp) Reads(_, slice uint32) []Read {
	return h.reads[slice*ReadsMax : min((slice+1)*ReadsMax, uint32(len(h.reads)))]
}

func (h hashOp) Step(_ *exact.Worker, _, _ uint32, acc []uint32, in [][]uint32) []uint32 {
	for _, words := range in {
		acc = append(acc, words...)
	}
	sum := bisect.Leaf(acc)
	r := wire.NewReader(sum[:])
	acc = make([]uint32, 8)
	for i := range acc {
		acc[i] = r.U32()
	}
	return acc
}

func (hashOp) Leaf(words []uint32) (h wire.Hash) {
	copy(h[:], appendWords(nil, words))
	return h
}

// newProgram is the program of one share.
func newProgram(s Setup, sequences uint32, tail Tail) (Program, error) {
	m, err := NewModel(s)
	if err != nil {
		return nil, err
	}
	return m.Program(sequences, tail)
}

// program is the case's with a plain tail.
func (c modelCase) program(t testing.TB) *steps {
	t.Helper()
	p, err := newProgram(c.setup(), uint32(c.sequences), newPlainTail(c.cfg))
	if err != nil {
		t.Fatal(err)
	}
	return p.(*steps)
}

func TestTheGradientIsThatOfTheModel(t *testing.T) {
	pool := exact.NewPool(2)
	defer pool.Close()
	for _, c := range modelCases() {
		t.Run(c.name, func(t *testing.T) {
			want := c.gradient(t, pool)
			p := c.program(t)
			tr, err := Run(context.Background(), pool, p, c.sources())
			if err != nil {
				t.Fatal(err)
			}
			all := make([]bool, p.Len())
			var keep []uint32
			for i := range all {
				all[i] = true
			}
			for _, g := range p.gradients {
				keep = append(keep, uint32(g-fixed))
			}
			slices.Sort(keep)
			values, err := tr.execute(context.Background(), all, keep, func(uint32, *result) {})
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range c.cfg.Layout().Tensors() {
				if fault := differs(matrixOf(s.Shape), s.Of(want), values[uint32(p.gradients[i]-fixed)]); fault != "" {
					t.Errorf("gradient of %s: %s", s.Name, fault)
				}
			}
			t.Logf("%d operations", p.Len())
		})
	}
}

// differs says where the tiles are not the matrix's.
func differs(m Matrix, want []float32, got *result) string {
	if len(got.tiles) != int(m.Tiles()) {
		return fmt.Sprintf("%d tiles, want %d", len(got.tiles), m.Tiles())
	}
	for tile := range m.Tiles() {
		r0, r1, c0, c1 := m.bounds(tile)
		for r := r0; r < r1; r++ {
			row := got.tiles[tile][(r-r0)*(c1-c0):][:c1-c0]
			if !slices.Equal(row, Bits(want[r*m.Cols+c0:r*m.Cols+c1])) {
				return fmt.Sprintf("row %d, columns %d to %d: %v, want %v", r, c0, c1, Floats(row), want[r*m.Cols+c0:r*m.Cols+c1])
			}
		}
	}
	return ""
}
