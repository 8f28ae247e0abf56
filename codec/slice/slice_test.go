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

func TestEncodeRefusesStates(t *testing.T) {
	c := mixedCodec(t)
	for at, left := range map[int]float32{c.n + 5: float32(math.Inf(1)), 5: 0x1p127, c.n: -1} {
		state := make([]float32, c.StateLen())
		state[at] = left
		before := slices.Clone(state)
		if _, err := c.Encode(nil, state, normals(1, c.n), .1); err == nil || !slices.Equal(state, before) {
			t.Errorf("%v at element %d: error %v", left, at, err)
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
