package distro

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/wire"
)

func newCodec(t testing.TB, cfg Config, pool *exact.Pool, specs ...tensor.Spec) *Codec {
	t.Helper()
	c, err := New(tensor.NewLayout(specs), cfg, pool)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBlocksCoverEveryElementOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var specs []tensor.Spec
		for i := range rapid.IntRange(0, 4).Draw(t, "tensors") {
			shape := rapid.SliceOfN(rapid.IntRange(1, 40), 0, 3).Draw(t, "shape")
			specs = append(specs, tensor.Spec{Name: fmt.Sprint("t", i), Shape: shape})
		}
		cfg := Config{Block: rapid.IntRange(1, 12).Draw(t, "chunk"), TopK: 2}
		c, err := New(tensor.NewLayout(specs), cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen := make([]int, c.n)
		state, bit, signs := 0, 0, 0
		for i, b := range c.table() {
			s := b.shape
			if s.h > cfg.Block || s.w > cfg.Block || b.state != state || b.bit != bit || b.signs != signs {
				t.Fatalf("block %+v of (%d, %d) with chunk %d, want state %d, bit %d and signs %d", b, s.h, s.w, cfg.Block, state, bit, signs)
			}
			if at := c.at(i); at.i != i || at.block != b {
				t.Fatalf("block %d is %+v by its number, want %+v", i, at.block, b)
			}
			for i := range s.h {
				for j := range s.w {
					seen[b.offset+i*b.stride+j]++
				}
			}
			state += s.h * s.w
			bit += s.Bits
			signs += (s.h*s.w + 7) / 8
		}
		if state != c.StateLen() || slices.ContainsFunc(seen, func(n int) bool { return n != 1 }) {
			t.Fatalf("%d coefficients for %d elements, which are in so many blocks: %v", state, c.StateLen(), seen)
		}
	})
}

// table returns all blocks, in order.
func (c *Codec) table() (list []block) {
	for at := c.at(0); at.i < c.blocks; at.next() {
		list = append(list, at.block)
	}
	return list
}

func TestDimensionsAreCutEvenly(t *testing.T) {
	for _, v := range []struct {
		size, chunk int
		want        []int
	}{
		{128, 64, []int{64, 64}}, {100, 64, []int{50, 50}}, {101, 64, []int{51, 50}}, {64, 64, []int{64}}, {65, 64, []int{33, 32}},
		{131, 64, []int{44, 44, 43}}, {3, 64, []int{3}}, {5, 1, []int{1, 1, 1, 1, 1}},
	} {
		side := newSide(v.size, v.chunk)
		var got []int
		next := 0
		for i := range side.count {
			from, less := side.piece(i)
			n := longest(v.size, v.chunk)
			if side.longer > 0 {
				n -= less
			}
			if from != next {
				t.Errorf("%d by %d: piece %d begins at %d, want %d", v.size, v.chunk, i, from, next)
			}
			got = append(got, n)
			next += n
		}
		if !slices.Equal(got, v.want) {
			t.Errorf("%d in pieces up to %d: %v, want %v", v.size, v.chunk, got, v.want)
		}
	}
}

func TestLargestCoefficientsAreSentAndEqualOnesFromTheLowestPosition(t *testing.T) {
	c := newCodec(t, Config{Block: 3, TopK: 3, Decay: 1}, nil, tensor.Spec{Name: "w", Shape: []int{3, 3}})
	for _, v := range []struct {
		state    []float32
		sent     []uint16
		negative uint64
	}{
		{[]float32{1, -2, 3, -4, 5, -6, 7, -8, 9}, []uint16{6, 7, 8}, 0b010},
		{[]float32{9, 8, -7, 6, 5, 4, 3, 2, 1}, []uint16{0, 1, 2}, 0b100},
		{[]float32{1, 1, -1, 1, 1, -1, 1, 1, 1}, []uint16{0, 1, 2}, 0b100},
		{[]float32{1, 2, 1, 1, -1, 2, 1, 1, 1}, []uint16{0, 1, 5}, 0},
		{[]float32{0, 0, 0, 2, 0, 0, 0, 0, -2}, []uint16{3, 8}, 0b10},
		{make([]float32, 9), nil, 0},
		{[]float32{0, 0, 0, 0, 0, 0, 0, 0, -math.SmallestNonzeroFloat32}, []uint16{8}, 1},
	} {
		state := slices.Clone(v.state)
		p, err := c.Encode(nil, state, make([]float32, 9), .5)
		if err != nil {
			t.Fatal(err)
		}
		got := decoded(p, &c.table()[0])
		if !slices.Equal(got.Positions[:got.N], v.sent) || got.Negative != v.negative {
			t.Errorf("momentum %v: sends %v with signs %b, want %v with %b", v.state, got.Positions[:got.N], got.Negative, v.sent, v.negative)
		}
		for i, m := range state {
			want := v.state[i]
			if slices.Contains(v.sent, uint16(i)) {
				want = 0
			}
			if m != want {
				t.Errorf("momentum %v: is %v at %d afterwards, want %v", v.state, m, i, want)
			}
		}
	}
}

func TestLargestGradientsDoNotOverflow(t *testing.T) {
	c := newCodec(t, Config{Block: 64, TopK: 2, Decay: 1}, nil, tensor.Spec{Name: "w", Shape: []int{64, 64}})
	grad, state := make([]float32, c.n), make([]float32, c.n)
	for i := range grad {
		grad[i] = 1 << 54 // a norm of 2^60, all of it in coefficient 0
		state[i] = stateMax
	}
	p, err := c.Encode(nil, state, grad, codec.LRMax)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(p); err != nil {
		t.Error(err)
	}
	for i, m := range state {
		if math.IsNaN(float64(m)) || math.IsInf(float64(m), 0) {
			t.Fatalf("momentum %d is %v", i, m)
		}
	}
}

func TestNewRefusesSettings(t *testing.T) {
	good := Config{Block: 64, TopK: 8, Decay: .9, WeightDecay: .1, ClipNorm: 1}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, v := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Block = 0 }, "distro: block is 0, it must be 1 to 128"},
		{func(c *Config) { c.Block = 129 }, "distro: block is 129, it must be 1 to 128"},
		{func(c *Config) { c.TopK = 0 }, "distro: top_k is 0, it must be 1 to 64"},
		{func(c *Config) { c.TopK = 65 }, "distro: top_k is 65, it must be 1 to 64"},
		{func(c *Config) { c.Decay = 1.01 }, "distro: decay is 1.01, it must be in [0, 1]"},
		{func(c *Config) { c.WeightDecay = -.1 }, "distro: weight_decay is -0.1, it must be in [0, 1]"},
		{func(c *Config) { c.ClipNorm = float32(math.NaN()) }, "distro: clip_norm is NaN, it must be in [0, 1.1529215e+18]"},
		{func(c *Config) { c.VotesMax = -1 }, "distro: votes_max is -1, it must be 0 to 65536"},
	} {
		cfg := good
		v.change(&cfg)
		if _, err := New(tensor.NewLayout(mixed), cfg, nil); fmt.Sprint(err) != v.want {
			t.Errorf("error %v, want %s", err, v.want)
		}
	}
}

func TestApply(t *testing.T) {
	c := newCodec(t, Config{Block: 2, TopK: 1, WeightDecay: .5}, nil, tensor.Spec{Name: "w", Shape: []int{2, 2}})
	send := func(position uint16, negative uint64) []byte {
		v := subset.Signed{N: 1, Negative: negative}
		v.Positions[0] = position
		code := c.table()[0].shape.Code(&v)
		return c.appendPayload(nil, code[:c.words])
	}
	mean, meanDown, across := send(0, 0), send(0, 1), send(1, 0)
	nothing := c.appendPayload(nil, make([]uint64, c.words))
	for _, v := range []struct {
		what     string
		payloads [][]byte
		want     []float32
	}{
		{"no payloads: nothing, not even decay", nil, []float32{8, -8, 4, 0}},
		{"a payload that says nothing: decay", [][]byte{nothing}, []float32{7, -7, 3.5, 0}},
		{"up goes against the gradient", [][]byte{mean}, []float32{6.75, -7.25, 3.25, -.25}},
		{"down", [][]byte{meanDown}, []float32{7.25, -6.75, 3.75, .25}},
		{"across", [][]byte{across}, []float32{6.75, -6.75, 3.25, .25}},
		{"a draw", [][]byte{mean, meanDown}, []float32{7, -7, 3.5, 0}},
		{"two outvote one", [][]byte{meanDown, mean, mean}, []float32{6.75, -7.25, 3.25, -.25}},
		{"one does not outvote two by a coefficient of its own", [][]byte{mean, across, mean}, []float32{6.75, -7.25, 3.25, -.25}},
	} {
		params := []float32{8, -8, 4, 0}
		if err := c.Apply(params, v.payloads, .25); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(params, v.want) {
			t.Errorf("%s: parameters %v, want %v", v.what, params, v.want)
		}
	}
}

// drift plays rounds of three members on pools and kernels of its own choice and returns all bytes
// that ever matter, hashed.
func drift(t *testing.T, pool *exact.Pool, reverse bool) wire.Hash {
	t.Helper()
	c := newCodec(t, Config{Block: 16, TopK: 4, Decay: .97, WeightDecay: .05, ClipNorm: 3}, pool,
		tensor.Spec{Name: "embed", Shape: []int{67, 48}}, tensor.Spec{Name: "norm", Shape: []int{48}}, tensor.Spec{Name: "w", Shape: []int{3, 20, 33}})
	params := splitmix(9, c.n)
	states := [3][]float32{make([]float32, c.n), make([]float32, c.n), make([]float32, c.n)}
	var all []byte
	for round := range 60 {
		lr := float32(.01) / float32(round+1)
		var payloads [][]byte
		for m, state := range states {
			grad := splitmix(uint64(1000*round+m), c.n)
			for i := range grad {
				grad[i] += float32(params[i] * .5)
			}
			p, err := c.Encode(nil, state, grad, lr)
			if err != nil {
				t.Fatal(err)
			}
			payloads = append(payloads, p)
			all = append(all, p...)
		}
		if reverse {
			slices.Reverse(payloads)
		}
		if err := c.Apply(params, payloads, lr); err != nil {
			t.Fatal(err)
		}
		all = tensor.AppendBytes(all, params)
	}
	for _, state := range states {
		all = tensor.AppendBytes(all, state)
	}
	return wire.SHA256(all)
}

// The hash is of all payloads, parameters and states of 60 rounds, whatever the order of the
// payloads.
func TestReplicasNeverDrift(t *testing.T) {
	const want = "d54e946c9f92d93ed7326257e0ed977badd7ddfb0aa1e39e117988b8a53fd14c"
	pool := exact.NewPool(2)
	defer pool.Close()
	for _, reverse := range []bool{false, true} {
		if got := drift(t, pool, reverse).String(); got != want {
			t.Errorf("reversed %v: hash %s, want %s", reverse, got, want)
		}
	}
}

// A codec has no table of its blocks, of which a large model has a hundred million.
func TestACodecOfALargeModelIsSmall(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := newCodec(t, Config{Block: 8, TopK: 2, Decay: .95}, nil, tensor.Spec{Name: "w", Shape: []int{32, 16384, 16384}})
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; c.blocks != 1<<27 || bytes > 1<<20 {
		t.Errorf("%d bytes for %d blocks", bytes, c.blocks)
	}
	if last := c.at(c.blocks - 1); last.end() != c.n || last.bit+last.shape.Bits != c.bits {
		t.Errorf("the last block is %+v", last.block)
	}
}
