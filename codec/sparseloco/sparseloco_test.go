package sparseloco

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// mixed has chunks of several sizes, whose bits lie at odd places.
var mixed = []tensor.Spec{{Name: "embed", Shape: []int{29, 18}}, {Name: "norm", Shape: []int{18}}, {Name: "scale"}}

func newCodec(t testing.TB, cfg Config, pool *exact.Pool, specs ...tensor.Spec) *Codec {
	t.Helper()
	c, err := New(tensor.NewLayout(specs), cfg, pool)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mixedCodec(t testing.TB) *Codec {
	return newCodec(t, Config{Chunk: 50, TopK: 7, Decay: .9, OuterRate: 1}, nil, mixed...)
}

func normals(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func encode(t rapid.TB, c *Codec, state, change []float32) []byte {
	t.Helper()
	p, err := c.Encode(nil, state, change, .1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// slow is the package comment's rule for one chunk, by sorting: what is sent of e.
func slow(e []float32, k int) []float32 {
	var at []int
	for i, x := range e {
		if x != 0 {
			at = append(at, i)
		}
	}
	abs := func(x float32) float32 { return float32(math.Abs(float64(x))) }
	slices.SortStableFunc(at, func(a, b int) int {
		switch {
		case abs(e[a]) > abs(e[b]):
			return -1
		case abs(e[a]) < abs(e[b]):
			return 1
		}
		return a - b
	})
	at = at[:min(k, len(at))]
	slices.Sort(at)
	mean := func(which func(x float32) bool) float32 {
		var sum float32
		n := 0
		for _, i := range at {
			if which(abs(e[i])) {
				sum += abs(e[i])
				n++
			}
		}
		return sum / float32(max(1, n))
	}
	all := mean(func(float32) bool { return true })
	isLarge := func(x float32) bool { return x > all }
	if !slices.ContainsFunc(at, func(i int) bool { return !isLarge(abs(e[i])) }) {
		isLarge = func(float32) bool { return false }
	}
	low, high := bfloat(mean(func(x float32) bool { return !isLarge(x) })), bfloat(mean(isLarge))
	out := make([]float32, len(e))
	if low < 0x1p-126 {
		return out
	}
	for _, i := range at {
		v := low
		if isLarge(abs(e[i])) {
			v = max(low, high)
		}
		out[i] = float32(math.Copysign(float64(v), float64(e[i])))
	}
	return out
}

// bfloat rounds to a significand of 8 bits, to even, by arithmetic.
func bfloat(x float32) float32 {
	if x == 0 {
		return 0
	}
	fraction, exponent := math.Frexp(float64(x))
	return float32(math.Ldexp(math.RoundToEven(fraction*256), exponent-8))
}

func TestEncodeIsTheRule(t *testing.T) {
	c := mixedCodec(t)
	rapid.Check(t, func(t *rapid.T) {
		state, change := normals(rapid.Uint64().Draw(t, "state"), c.n), normals(rapid.Uint64().Draw(t, "change"), c.n)
		for range rapid.IntRange(0, 40).Draw(t, "odd ones") { // ties, zeros, small and large
			at := rapid.IntRange(0, c.n-1).Draw(t, "at")
			change[at] = rapid.SampledFrom([]float32{0, 1, -1, 1e-30, 1e12, 1e-45}).Draw(t, "value")
			state[at] = 0
		}
		if rapid.Bool().Draw(t, "mostly zeros") {
			for i := range change {
				if i%50 > 3 {
					state[i], change[i] = 0, 0
				}
			}
		}
		before := make([]float32, c.n)
		for i := range before {
			before[i] = float32(c.cfg.Decay*state[i]) + change[i]
		}
		p := encode(t, c, state, change)
		if err := c.Check(p); err != nil {
			t.Fatal(err)
		}
		sent := make([]float32, c.n)
		if err := c.Apply(sent, [][]byte{p}, .1); err != nil {
			t.Fatal(err)
		}
		for i, k := range c.chunks {
			for n, want := range slow(before[k.from:k.from+k.n], k.space.K) {
				at := k.from + n
				if -sent[at] != want || state[at] != before[at]-want {
					t.Fatalf("chunk %d, value %d of %v: sent %v and left %v, want %v and %v", i, n, before[at], -sent[at], state[at], want, before[at]-want)
				}
			}
		}
	})
}

func TestConfigsAreChecked(t *testing.T) {
	good := Config{Chunk: 64, TopK: 4, Decay: .9, OuterRate: 1}
	for want, change := range map[string]func(*Config){
		"chunk is 0":           func(c *Config) { c.Chunk = 0 },
		"chunk is 16385":       func(c *Config) { c.Chunk = ChunkMax + 1 },
		"top_k is 0":           func(c *Config) { c.TopK = 0 },
		"top_k is 65":          func(c *Config) { c.TopK = TopKMax + 1 },
		"decay is 1.5":         func(c *Config) { c.Decay = 1.5 },
		"clip_chunks is -1":    func(c *Config) { c.ClipChunks = -1 },
		"clip_chunks is 16385": func(c *Config) { c.ClipChunks = clipMax + 1 },
		"outer_rate is N":      func(c *Config) { c.OuterRate = float32(math.NaN()) },
	} {
		c := good
		change(&c)
		if _, err := New(tensor.NewLayout(mixed), c, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestEncodeRefusesLargeNumbers(t *testing.T) {
	c := mixedCodec(t)
	for _, large := range [][2]float32{{1e31, 0}, {0, 1e20}} {
		state, change := normals(1, c.n), normals(2, c.n)
		state[100] += large[0]
		change[100] += large[1]
		if _, err := c.Encode(nil, state, change, .1); !errors.Is(err, codec.ErrTooLarge) {
			t.Errorf("%v in the state, %v in the change: %v", large[0], large[1], err)
		}
	}
}

func TestBitsPerParameter(t *testing.T) {
	const n = 1 << 22
	c := newCodec(t, Config{Chunk: 4096, TopK: 64, Decay: .95, OuterRate: 1}, nil, tensor.Spec{Name: "w", Shape: []int{n}})
	perParam := float64(8*c.PayloadMax()) / n
	t.Logf("%.4f bits per parameter", perParam)
	if perParam > 0.16 {
		t.Errorf("%.4f bits per parameter, want at most 0.16", perParam)
	}
}

// The hash of payloads, states, updates and parameters is part of the format.
func TestGolden(t *testing.T) {
	for _, v := range []struct {
		clipChunks int
		golden     string
	}{
		{0, "2ac6681de9250430c86cf6aa8d68582a253bb0bf7e2c1fb6af6d1e22f34e6a01"},
		{2, "a3d4e2b56388bff4ff65797d8078369575ce2c23ec200debfb45908d24037a11"},
	} {
		specs := []tensor.Spec{{Name: "a", Shape: []int{130, 67}}, {Name: "b", Shape: []int{2, 64, 64}}, {Name: "c", Shape: []int{201}}, {Name: "d", Shape: []int{3, 5}}}
		c := newCodec(t, Config{Chunk: 4096, TopK: 64, Decay: .95, OuterRate: .9, ClipChunks: v.clipChunks}, nil, specs...)
		params := normals(99, c.n)
		states := [][]float32{make([]float32, c.n), make([]float32, c.n), make([]float32, c.n)}
		sum := wire.Hash{}
		for round := range uint64(4) {
			var payloads [][]byte
			for i, s := range states {
				payloads = append(payloads, encode(t, c, s, normals(10*round+uint64(i), c.n)))
				sum = wire.Sum("test", sum[:], payloads[i], tensor.Bytes(s))
			}
			if v.clipChunks > 0 {
				update, err := Followable{c}.Update(nil, payloads)
				if err != nil {
					t.Fatal(err)
				}
				sum = wire.Sum("test", sum[:], update)
			}
			if err := c.Apply(params, payloads, .1); err != nil {
				t.Fatal(err)
			}
			sum = wire.Sum("test", sum[:], tensor.Bytes(params))
		}
		if sum.String() != v.golden {
			t.Errorf("%d chunks clipped together: the hash is %s, want %s", v.clipChunks, sum, v.golden)
		}
	}
}

func TestNothingIsAllocatedOnceWarm(t *testing.T) {
	pool := exact.NewPool(2)
	defer pool.Close()
	c := newCodec(t, Config{Chunk: 4096, TopK: 64, Decay: .9, OuterRate: 1}, pool, tensor.Spec{Name: "w", Shape: []int{200, 150}})
	change, state, params := normals(1, c.n), make([]float32, c.n), normals(2, c.n)
	payloads := make([][]byte, 1)
	if n := testing.AllocsPerRun(10, func() {
		var err error
		if payloads[0], err = c.Encode(payloads[0][:0], state, change, .1); err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(params, payloads, .1); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a round allocates %v times", n)
	}
}

// recode reads a payload and writes what it says.
func recode(c *Codec, payload []byte) []byte {
	messages := make([]message, len(c.chunks))
	for i := range c.chunks {
		k := &c.chunks[i]
		var r [1]subset.Reading
		messages[i] = k.read(&r[0], payload[codec.HeaderLen:])
		k.space.Decode(new(vec.Kernel), r[:])
		messages[i].code = k.space.Code(&r[0].Set)
	}
	return c.appendPayload(nil, messages)
}

func TestCheckRefuses(t *testing.T) {
	c := newCodec(t, Config{Chunk: 8, TopK: 3, OuterRate: 1}, nil, tensor.Spec{Name: "w", Shape: []int{8}})
	k := &c.chunks[0]
	chosen := subset.Signed{N: 2, Negative: 1}
	chosen.Positions[1] = 5
	code := k.space.Code(&chosen)
	const one, two = 0x3f80, 0x4000
	for _, v := range []struct {
		what    string
		message message
		want    error
	}{
		{"two values, one large", message{code: code, large: 2, low: one, high: two}, nil},
		{"two values alike", message{code: code, low: one, high: one}, nil},
		{"nothing", message{}, nil},
		{"nothing, with a magnitude", message{low: one, high: one}, errEmpty},
		{"nothing, and it is large", message{large: 1}, errEmpty},
		{"the third of two is large", message{code: code, large: 4, low: one, high: two}, errPlaces},
		{"no magnitude", message{code: code}, errScale},
		{"a subnormal magnitude", message{code: code, low: 0x7f, high: 0x7f}, errScale},
		{"a negative magnitude", message{code: code, low: one, high: 0x8000 | two}, errScale},
		{"an infinite magnitude", message{code: code, large: 1, low: one, high: 0x7f80}, errScale},
		{"the large ones below the small ones", message{code: code, large: 1, low: two, high: one}, errScale},
		{"all large", message{code: code, large: 3, low: one, high: two}, errLarge},
		{"large ones as small ones", message{code: code, large: 1, low: one, high: one}, errLarge},
		{"a second magnitude that nothing has", message{code: code, low: one, high: two}, errLarge},
		{"a code beyond all", message{code: k.space.Total, low: one, high: one}, errCode},
	} {
		if err := c.Check(c.appendPayload(nil, []message{v.message})); !errors.Is(err, v.want) || err == nil != (v.want == nil) {
			t.Errorf("%s: %v, want %v", v.what, err, v.want)
		}
	}
	p := c.appendPayload(nil, []message{{}})
	if p[len(p)-1] |= 0x80; c.bits%8 == 0 || c.Check(p) == nil {
		t.Errorf("a bit after the end of %d passes", c.bits)
	}
	if err := c.Check(p[:len(p)-1]); err == nil {
		t.Error("a payload cut short passes")
	}
}

func FuzzCheck(f *testing.F) {
	c := mixedCodec(f)
	f.Add(encode(f, c, make([]float32, c.n), normals(1, c.n)))
	f.Add(encode(f, c, make([]float32, c.n), make([]float32, c.n)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c.Check(b) != nil {
			return
		}
		if again := recode(c, b); !bytes.Equal(again, b) {
			t.Errorf("%x is read as what is written as %x", b, again)
		}
		params := make([]float32, c.n)
		if err := c.Apply(params, [][]byte{b, b}, .1); err != nil || exact.Finite(params) >= 0 {
			t.Errorf("%x gives %v", b, err)
		}
	})
}

func ExampleCodec() {
	layout := tensor.NewLayout([]tensor.Spec{{Name: "w", Shape: []int{8}}})
	c, err := New(layout, Config{Chunk: 8, TopK: 3, Decay: .95, OuterRate: 1}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	state, params := make([]float32, c.StateLen()), make([]float32, 8)
	payload, err := c.Encode(nil, state, []float32{.25, 0, -1.5, .5, .125, 0, 0, 0}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Apply(params, [][]byte{payload}, 0); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(payload), params, state)
	// Output: 18 [-0.375 0 1.5 -0.375 0 0 0 0] [-0.125 0 0 0.125 0.125 0 0 0]
}
