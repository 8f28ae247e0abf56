package slice

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// mixed has a tensor of many groups, one whose last leaf is short, one that is a single short leaf,
// and a scalar.
var mixed = []tensor.Spec{
	{Name: "embed", Shape: []int{40, 32}}, {Name: "odd", Shape: []int{37, 11}}, {Name: "norm", Shape: []int{9}}, {Name: "scale"},
}

var mixedConfig = Config{Compression: 5, Leaf: 16, Decay: 1, WeightDecay: .1, ClipNorm: 1}

func newCodec(t testing.TB, specs []tensor.Spec, cfg Config, pool *exact.Pool) *Codec {
	t.Helper()
	c, err := New(tensor.NewLayout(specs), cfg, pool)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mixedCodec(t testing.TB) *Codec { return newCodec(t, mixed, mixedConfig, nil) }

func seedOfNumber(i uint64) wire.Hash { return wire.Sum("slice/test", wire.AppendU64(nil, i)) }

// normals returns n numbers around 0.
func normals(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// anySealed is a sealed update of values that any gradient could have made.
func anySealed(c *Codec, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	b := append([]byte(nil), c.sealed[:]...)
	for range c.n {
		b = append(b, byte(int8(r.IntN(2*valueMax+1)-valueMax)))
	}
	return b
}

// encoded is the sealed update after some windows of random gradients, and the state they leave.
func encoded(t testing.TB, c *Codec, seed uint64, windows int) (sealed []byte, state []float32) {
	t.Helper()
	state = make([]float32, c.StateLen())
	for w := range windows {
		var err error
		if sealed, err = c.Encode(nil, state, normals(seed+uint64(w), c.n), .01); err != nil {
			t.Fatal(err)
		}
	}
	return sealed, state
}

func TestCheckRefuses(t *testing.T) {
	c := mixedCodec(t)
	seed := seedOfNumber(5)
	valid := c.Reveal(nil, anySealed(c, 5), seed)
	change := func(at int, b ...byte) []byte {
		p := bytes.Clone(valid)
		copy(p[at:], b)
		return p
	}
	other := newCodec(t, mixed, Config{Compression: 5, Leaf: 17, Decay: 1}, nil)
	same := newCodec(t, mixed, Config{Compression: 5, Leaf: 16, Decay: .5}, nil)
	if err := same.Check(valid); err != nil {
		t.Errorf("settings which do not change the meaning of reveals change their header: %v", err)
	}
	if other.Check(other.Reveal(nil, anySealed(other, 5), seed)) != nil {
		t.Error("another codec refuses its own")
	}
	for _, v := range []struct {
		what    string
		payload []byte
		want    string
	}{
		{"nothing", nil, "payload has 0 bytes"},
		{"short", valid[:len(valid)-1], "payload has "},
		{"long", append(bytes.Clone(valid), 0), "payload has "},
		{"magic", change(0, 'x'), `payload begins with "xSR1"`},
		{"layout", change(4, valid[4]+1), "payload is for layout"},
		{"sealed", func() []byte { p := bytes.Clone(valid); copy(p, c.sealed[:]); return p }(), `payload begins with "eSD1"`},
		{"value", change(headLen, 0x80), "value 0 is -128, below"},
		{"value", change(headLen+20, 0x80), "value 20 is -128, below"},
	} {
		err := c.Check(v.payload)
		if err == nil || !strings.HasPrefix(err.Error(), "slice: "+v.want) {
			t.Errorf("%s: %v, want %s", v.what, err, v.want)
		}
		if _, _, err := c.Open(v.payload); err == nil {
			t.Errorf("%s: opened", v.what)
		}
		params := normals(1, c.n)
		before := slices.Clone(params)
		if err := c.Apply(params, [][]byte{valid, v.payload}, .1); err == nil || !slices.Equal(params, before) {
			t.Errorf("%s: applied, %v", v.what, err)
		}
	}
	padded := false // a draw of leaves whose proofs are shorter
	for i := range uint64(100) {
		p := c.Reveal(nil, anySealed(c, 5), seedOfNumber(i))
		if p[len(p)-1] != 0 || p[len(p)-hashLen] != 0 {
			continue
		}
		padded = true
		p[len(p)-1] = 1
		if err := c.Check(p); err == nil || !strings.Contains(err.Error(), "after the proofs is not zero") {
			t.Fatalf("padding: %v", err)
		}
	}
	if !padded {
		t.Error("no draw was padded")
	}
}

func TestApplyRefusesRevealsOfDifferentSeeds(t *testing.T) {
	c := mixedCodec(t)
	a, b := c.Reveal(nil, anySealed(c, 1), seedOfNumber(1)), c.Reveal(nil, anySealed(c, 1), seedOfNumber(2))
	params := normals(1, c.n)
	before := slices.Clone(params)
	if err := c.Apply(params, [][]byte{a, b}, .1); err == nil || !slices.Equal(params, before) {
		t.Errorf("applied, %v", err)
	}
	if err := c.Apply(params, nil, .1); err != nil || !slices.Equal(params, before) {
		t.Errorf("no reveals: %v", err)
	}
	if err := c.Apply(params, [][]byte{a}, -1); err == nil {
		t.Error("a negative rate is accepted")
	}
}

// The same bits with any number of workers, on any kernel, and into a slice that has bytes already.
func TestBitsDoNotDependOnTheMachine(t *testing.T) {
	specs := []tensor.Spec{{Name: "a", Shape: []int{300, 171}}, {Name: "b", Shape: []int{33}}}
	cfg := Config{Compression: 7, Leaf: 64, Decay: .9, WeightDecay: .1, ClipNorm: 1}
	var sealed, reveal []byte
	var state, params []float32
	for _, kernel := range exact.Kernels() {
		for _, workers := range []int{1, 2, 5} {
			pool := exact.NewPoolOf(workers, kernel)
			c := newCodec(t, specs, cfg, pool)
			s, st := encoded(t, c, 9, 4)
			r := c.Reveal(nil, s, seedOfNumber(9))
			if _, _, err := c.Open(r); err != nil {
				t.Fatal(err)
			}
			p := normals(3, c.n)
			if err := c.Apply(p, [][]byte{r, r, c.Reveal(nil, anySealed(c, 3), seedOfNumber(9))}, .01); err != nil {
				t.Fatal(err)
			}
			if sealed == nil {
				sealed, state, reveal, params = s, st, r, p
			}
			if !bytes.Equal(s, sealed) || !slices.Equal(st, state) || !bytes.Equal(r, reveal) || !slices.Equal(p, params) {
				t.Errorf("%s, %d workers: other bits", kernel.Name(), workers)
			}
			pool.Close()
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	c := mixedCodec(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range []struct {
		what        string
		at, atState int
		grad, left  float32
		lr          float32
	}{
		{"NaN", 3, -1, nan, 0, .1}, {"infinity", c.n - 1, -1, inf, 0, .1}, {"huge", 0, -1, 0x1p100, 0, .1},
		{"state", -1, 5, 0, nan, .1}, {"squares", -1, c.n + 5, 0, inf, .1}, {"large state", -1, 5, 0, 0x1p127, .1},
		{"negative squares", -1, c.n, 0, -1, .1}, {"rate", -1, -1, 0, 0, -1},
	} {
		grad, state := normals(1, c.n), make([]float32, c.StateLen())
		if v.at >= 0 {
			grad[v.at] = v.grad
		}
		if v.atState >= 0 {
			state[v.atState] = v.left
		}
		before := slices.Clone(state)
		dst, err := c.Encode([]byte("abc"), state, grad, v.lr)
		if err == nil || string(dst) != "abc" || !bytes.Equal(tensor.Bytes(state), tensor.Bytes(before)) {
			t.Errorf("%s: error %v, %d bytes", v.what, err, len(dst))
		}
	}
}

func TestConfigsAreChecked(t *testing.T) {
	good := Config{Compression: 1, Leaf: LeafMin}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []func(*Config){
		func(c *Config) { c.Compression = 0 }, func(c *Config) { c.Compression = CompressionMax + 1 }, func(c *Config) { c.Leaf = LeafMin - 1 },
		func(c *Config) { c.Leaf = LeafMax + 1 }, func(c *Config) { c.Decay = 2 }, func(c *Config) { c.WeightDecay = -1 },
		func(c *Config) { c.ClipNorm = float32(math.NaN()) },
	} {
		bad := good
		f(&bad)
		if _, err := New(tensor.NewLayout(mixed), bad, nil); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func hexSum(b []byte) string {
	h := wire.Sum("slice/test", b)
	return hex.EncodeToString(h[:8])
}
