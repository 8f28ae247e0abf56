package trace

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// tailCase is a layout and settings of the codec.
type tailCase struct {
	name   string
	layout []tensor.Spec
	cfg    distro.Config
	pieces bool // payloads are named by their pieces
}

func tailCases() []tailCase {
	odd := []tensor.Spec{
		{Name: "a", Shape: []int{70, 33}}, {Name: "b", Shape: []int{37}}, {Name: "c", Shape: []int{2, 3, 129}}, {Name: "d"},
		{Name: "e", Shape: []int{5, 600}}, {Name: "f", Shape: []int{700}}, {Name: "g", Shape: []int{1, 1}},
	}
	return []tailCase{
		{"odd sizes", odd, distro.Config{Block: 64, TopK: 32, Decay: .9, ClipNorm: 1}, false},
		{"no clipping", odd, distro.Config{Block: 16, TopK: 64, Decay: 1}, false},
		{"blocks of one", odd, distro.Config{Block: 1, TopK: 1, ClipNorm: 3}, false},
		{"largest blocks", odd, distro.Config{Block: 128, TopK: 5, Decay: .5, ClipNorm: 1e6}, false},
		{"blocks across tiles", []tensor.Spec{{Name: "w", Shape: []int{130, 190}}}, distro.Config{Block: 120, TopK: 8, Decay: .5, ClipNorm: .1}, false},
		{"several chunks", []tensor.Spec{{Name: "v", Shape: []int{257}}, {Name: "w", Shape: []int{300, 513}}, {Name: "x", Shape: []int{1000, 64}}},
			distro.Config{Block: 64, TopK: 32, Decay: .95, ClipNorm: 1}, false},
		{"a payload of several chunks", []tensor.Spec{{Name: "w", Shape: []int{1024, 1300}}}, distro.Config{Block: 4, TopK: 16, Decay: .95}, false},
		{"pieces of a payload", []tensor.Spec{{Name: "w", Shape: []int{300, 513}}}, distro.Config{Block: 4, TopK: 16, Decay: .95}, true},
	}
}

func (c tailCase) codec(t testing.TB) *distro.Codec {
	t.Helper()
	made, err := distro.New(tensor.NewLayout(c.layout), c.cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// tailProgram is a program whose operations before the tail give the gradient.
type tailProgram struct {
	tensors []tensor.Tensor
	grad    []float32
	tail    Tail
}

func newTailProgram(t testing.TB, c tailCase, grad []float32, lr float32) tailProgram {
	t.Helper()
	layout := tensor.NewLayout(c.layout)
	tails, err := NewTails(c.codec(t), layout)
	if err != nil {
		t.Fatal(err)
	}
	if c.pieces {
		tails.CommitPieces()
	}
	return tailProgram{layout.Tensors(), grad, tails.Tail(lr, tailShare())}
}

func tailShare() Share { return Share{Run: wire.Sum("trace-test"), Round: 7, Member: 3} }

func (p tailProgram) Len() uint32 { return uint32(len(p.tensors)) + p.tail.Len() }

func (p tailProgram) Op(t uint32) Op {
	if base := uint32(len(p.tensors)); t >= base {
		return p.tail.Op(t-base, base, func(tensor int) uint32 { return uint32(tensor) })
	}
	x := p.tensors[t]
	m := matrixOf(x.Shape)
	return funcOp{
		name: "gradient of " + x.Name, tiles: m.Tiles(),
		words: func(tile, _ uint32) int { return m.Words(tile) },
		reads: func(uint32, uint32) []Read { return nil },
		step: func(_ *exact.Worker, tile, _ uint32, _ []uint32, _ [][]uint32) []uint32 {
			r0, r1, c0, c1 := m.bounds(tile)
			var out []uint32
			for r := r0; r < r1; r++ {
				out = append(out, Bits(x.Of(p.grad)[r*m.Cols+c0:r*m.Cols+c1])...)
			}
			return out
		},
	}
}

// results are all values of a program.
type results [][][]uint32 // by operation and tile

// execute runs a program on one worker, and checks that each operation keeps to what Op promises.
func execute(t testing.TB, p Program, w *exact.Worker, state []float32) results {
	t.Helper()
	all := make(results, p.Len())
	for i := range p.Len() {
		op := p.Op(i)
		if op.Name() == "" || op.Tiles() == 0 {
			t.Fatalf("operation %d, %q, has %d tiles", i, op.Name(), op.Tiles())
		}
		for tile := range op.Tiles() {
			var acc []uint32
			for slice := range op.Slices(tile) {
				acc = op.Step(w, tile, slice, acc, inputs(t, all, state, op, i, tile, slice))
				if len(acc) != op.Words(tile, slice) {
					t.Fatalf("%s, tile %d, slice %d: %d words, not %d as it says", op.Name(), tile, slice, len(acc), op.Words(tile, slice))
				}
			}
			all[i] = append(all[i], acc)
		}
	}
	return all
}

func inputs(t testing.TB, all results, state []float32, op Op, i, tile, slice uint32) [][]uint32 {
	t.Helper()
	reads := op.Reads(tile, slice)
	if len(reads) > ReadsMax || !slices.Equal(reads, op.Reads(tile, slice)) {
		t.Fatalf("%s, tile %d, slice %d: reads %v", op.Name(), tile, slice, reads)
	}
	var in [][]uint32
	for _, r := range reads {
		switch {
		case r.Source == State && len(reads) == 1:
			in = append(in, Bits(state[r.Index*ChunkWords:min(len(state), int(r.Index+1)*ChunkWords)]))
		case r.Source == Value && r.Op < i && r.Index < uint32(len(all[r.Op])):
			in = append(in, all[r.Op][r.Index])
		default:
			t.Fatalf("%s, tile %d, slice %d: reads %+v", op.Name(), tile, slice, r)
		}
	}
	return in
}

func random(seed uint64, n int, scale float32) []float32 {
	r := prng.New(wire.Sum("trace-test", wire.AppendU64(nil, seed)), "floats")
	v := make([]float32, n)
	for i := range v {
		v[i] = (float32(r.Uint64n(1<<24))/(1<<23) - 1) * scale
	}
	return v
}

func TestTheTailIsWhatTheCodecDoes(t *testing.T) {
	t.Parallel()
	for _, c := range tailCases() {
		t.Run(c.name, func(t *testing.T) {
			made := c.codec(t)
			kernels := exact.Kernels()
			for i, scale := range []float32{.01, 30} {
				n := made.StateLen()
				grad, state := random(uint64(i), n, scale), random(9, n, .01)
				if i == 0 {
					clear(state)
				}
				p := newTailProgram(t, c, grad, .02)
				all := execute(t, p, exact.NewWorker(kernels[i*(len(kernels)-1)]), state)
				payload, err := made.Encode(nil, state, grad, .02)
				if err != nil {
					t.Fatal(err)
				}
				s := tailShare()
				want := dispute.Outcome(dispute.Commitment{
					Payload: codec.PayloadRoot(payload, c.pieces), PayloadBytes: uint32(len(payload)), State: merkle.BlobRoot(tensor.Bytes(state)),
					Work: dispute.WorkHash(s.Run, coordinator.Round(s.Round), coordinator.Member(s.Member), merkle.BlobRoot(tensor.Bytes(grad))),
				})
				last := p.Op(p.Len() - 1)
				if got := leaf(last, all[p.Len()-1][0]); got != want {
					t.Fatalf("scale %g: the outcome is %s, want %s", scale, got, want)
				}
				checkPayload(t, p, all, payload)
			}
		})
	}
}

// checkPayload finds the payload among the values, so that the test above cannot pass by comparing
// nothing.
func checkPayload(t *testing.T, p Program, all results, payload []byte) {
	t.Helper()
	for i := range p.Len() {
		if p.Op(i).Name() != "payload" {
			continue
		}
		var got []byte
		for _, tile := range all[i] {
			got = append(got, littleEndian(tile)...)
		}
		if !bytes.Equal(got[:len(payload)], payload) {
			t.Error("the payload's bytes differ")
		}
		return
	}
	t.Error("no operation makes the payload")
}

func TestAStepThatTheCodecRefusesHasNoOutcome(t *testing.T) {
	c := tailCases()[0]
	made := c.codec(t)
	n := made.StateLen()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, broken := range []struct {
		name        string
		grad, state float32
		lr          float32
		refused     bool
	}{
		{"nothing", 1, 1, .1, false}, {"a NaN", nan, 1, .1, true}, {"an infinity", inf, 0, .1, true}, {"a long gradient", 1e20, 0, .1, true},
		{"a NaN in the state", 1, nan, .1, true}, {"a large state", 1, 1e37, .1, true}, {"a rate too high", 1, 1, 1e9, true},
		{"a state just below the limit", 1, 1e30, .1, false},
	} {
		t.Run(broken.name, func(t *testing.T) {
			grad, state := random(1, n, 1), random(2, n, 1)
			grad[n/2], state[n/3] = broken.grad, broken.state
			p := newTailProgram(t, c, grad, broken.lr)
			all := execute(t, p, exact.NewWorker(exact.Kernels()[0]), state)
			plain := execute(t, p, exact.NewWorker(plainKernel(t)), state)
			for i := range all {
				for tile := range all[i] {
					if !slices.Equal(all[i][tile], plain[i][tile]) {
						t.Fatalf("%s, tile %d: kernels differ", p.Op(uint32(i)).Name(), tile)
					}
				}
			}
			if _, err := made.Encode(nil, state, grad, broken.lr); (err != nil) != broken.refused {
				t.Fatalf("Encode says %v", err)
			}
			if got := leaf(p.Op(p.Len()-1), all[p.Len()-1][0]); got.IsZero() != broken.refused {
				t.Errorf("the outcome is %s", got)
			}
		})
	}
}

func plainKernel(t testing.TB) exact.Kernel {
	t.Helper()
	k, err := exact.KernelNamed("plain")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestTheTailTakesAnyWords gives each slice words that no honest computation makes: a referee must
// not fall over what a liar proves to it.
func TestTheTailTakesAnyWords(t *testing.T) {
	c := tailCases()[5]
	n := c.codec(t).StateLen()
	p := newTailProgram(t, c, random(1, n, 1), .1)
	fast, plain := exact.NewWorker(exact.Kernels()[0]), exact.NewWorker(plainKernel(t))
	r := prng.New(wire.Sum("trace-test"), "words")
	words := func(n int) []uint32 {
		v := make([]uint32, n)
		for i := range v {
			switch v[i] = uint32(r.Uint64()); r.Uint64n(8) {
			case 0:
				v[i] = 0
			case 1:
				v[i] = 1
			case 2:
				v[i] |= 0x7f800000
			}
		}
		return v
	}
	for i := range p.Len() {
		op := p.Op(i)
		for range 40 {
			tile := uint32(r.Uint64n(uint64(op.Tiles())))
			slice := uint32(r.Uint64n(uint64(op.Slices(tile))))
			var acc []uint32
			if slice > 0 {
				acc = words(op.Words(tile, slice-1))
			}
			var in [][]uint32
			for _, read := range op.Reads(tile, slice) {
				size := min(ChunkWords, n-int(read.Index)*ChunkWords)
				if read.Source == Value {
					of := p.Op(read.Op)
					size = of.Words(read.Index, of.Slices(read.Index)-1)
				}
				in = append(in, words(size))
			}
			before := make([][]uint32, len(in))
			for k := range in {
				before[k] = slices.Clone(in[k])
			}
			a, b := op.Step(fast, tile, slice, slices.Clone(acc), in), op.Step(plain, tile, slice, slices.Clone(acc), in)
			if len(a) != op.Words(tile, slice) || !slices.Equal(a, b) {
				t.Fatalf("%s, tile %d, slice %d: %d words by one kernel and %d by another, or others", op.Name(), tile, slice, len(a), len(b))
			}
			if !slices.EqualFunc(in, before, slices.Equal) {
				t.Fatalf("%s, tile %d, slice %d: changes what it reads", op.Name(), tile, slice)
			}
		}
	}
}

func TestTailsOfAnotherLayoutAreRefused(t *testing.T) {
	c := tailCases()[0]
	if _, err := NewTail(c.codec(t), tensor.NewLayout(c.layout[1:]), .1, tailShare()); err == nil {
		t.Error("a codec of another layout was taken")
	}
}

// NewTail returns the tail of one step.
func NewTail(c codec.Disputable, layout tensor.Layout, lr float32, share Share) (Tail, error) {
	tails, err := NewTails(c, layout)
	if err != nil {
		return nil, err
	}
	return tails.Tail(lr, share), nil
}
