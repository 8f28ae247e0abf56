package slice

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// mixed has a tensor of many groups, one whose last leaf is short, one that is a single short leaf, and a scalar.
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

// The root is what package merkle makes of the definition, and each proof is one that merkle.Check accepts.
func TestRootIsThatOfTheDefinition(t *testing.T) {
	c := mixedCodec(t)
	sealed := anySealed(c, 1)
	values := sealed[codec.HeaderLen:]
	var groups []merkle.Hash
	for _, v := range tensor.NewLayout(mixed).Tensors() {
		var leaves []merkle.Hash
		for at := v.Offset; at < v.Offset+v.Len; at += 16 {
			leaves = append(leaves, merkle.Leaf(values[at:min(at+16, v.Offset+v.Len)]))
		}
		n := (len(leaves) + 4) / 5
		for g := range n {
			size := len(leaves) / (n - g)
			if len(leaves)%(n-g) != 0 {
				size++
			}
			groups = append(groups, merkle.Root(leaves[:size]))
			leaves = leaves[size:]
		}
	}
	if got, want := c.Root(sealed), merkle.Root(groups); got != want {
		t.Errorf("root %v, want %v", got, want)
	}
}

func TestRangesTakeOneLeafOfEachGroup(t *testing.T) {
	c := mixedCodec(t)
	tensors := tensor.NewLayout(mixed).Tensors()
	counts := map[int]int{} // draws by first position
	const draws = 20000
	for i := range uint64(draws) {
		ranges := c.Ranges(seedOfNumber(i))
		for k, r := range ranges {
			counts[r.From]++
			v := tensors[r.Tensor]
			if r.From < v.Offset || r.To > v.Offset+v.Len || r.Len() < 1 || k > 0 && r.From < ranges[k-1].To {
				t.Fatalf("range %+v of tensor %+v after %+v", r, v, ranges[max(0, k-1)])
			}
		}
		for ti, v := range tensors {
			got := 0
			for _, r := range ranges {
				if r.Tensor == ti {
					got++
				}
			}
			if leaves := (v.Len + 15) / 16; 5*got < leaves {
				t.Fatalf("%d leaves of %d of tensor %s, fewer than one in 5", got, leaves, v.Name)
			}
		}
	}
	for _, g := range c.plan.groups {
		for i := range g.leaves {
			want := float64(draws) / float64(g.leaves)
			if got := float64(counts[c.plan.leafRange(&g, i).From]); math.Abs(got-want) > 5*math.Sqrt(want) {
				t.Errorf("leaf %d of group %+v was drawn %v times, want about %v", i, g, got, want)
			}
		}
	}
}

// Two groups' draws are independent, as are two windows': a member who knows what was drawn knows nothing of what will be.
func TestDrawsAreIndependent(t *testing.T) {
	c := newCodec(t, []tensor.Spec{{Name: "w", Shape: []int{4 * 4 * 16}}}, Config{Compression: 4, Leaf: 16}, nil)
	var groups, windows [4][4]int
	last := 0
	const draws = 16000
	for i := range uint64(draws) {
		r := c.Ranges(seedOfNumber(i))
		a, b := r[0].From/16, r[1].From/16-4
		groups[a][b]++
		windows[last][a]++
		last = a
	}
	for i := range 4 {
		for k := range 4 {
			for _, got := range []int{groups[i][k], windows[i][k]} {
				if want := draws / 16.0; math.Abs(float64(got)-want) > 5*math.Sqrt(want) {
					t.Errorf("leaf %d after leaf %d: %d times, want about %v", k, i, got, want)
				}
			}
		}
	}
}

// anyShape draws a layout and how it is cut.
func anyShape(t *rapid.T) ([]tensor.Spec, Config) {
	var specs []tensor.Spec
	for i := range rapid.IntRange(1, 4).Draw(t, "tensors") {
		specs = append(specs, tensor.Spec{Name: string(rune('a' + i)), Shape: []int{rapid.IntRange(1, 3000).Draw(t, "size")}})
	}
	return specs, Config{
		Compression: rapid.Uint32Range(1, 40).Draw(t, "compression"), Leaf: rapid.Uint32Range(LeafMin, 70).Draw(t, "leaf"), Decay: 1,
	}
}

func TestRevealsOpenToTheRoot(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		specs, cfg := anyShape(r)
		c, err := New(tensor.NewLayout(specs), cfg, nil)
		if err != nil {
			r.Fatal(err)
		}
		seed, sealed := seedOfNumber(rapid.Uint64().Draw(r, "seed")), anySealed(c, rapid.Uint64().Draw(r, "values"))
		reveal := c.Reveal([]byte("before"), sealed, seed)
		if string(reveal[:6]) != "before" || len(reveal) != 6+c.RevealLen() || c.PayloadMax() != c.RevealLen() {
			r.Fatalf("reveal of %d bytes, want %d, PayloadMax %d", len(reveal)-6, c.RevealLen(), c.PayloadMax())
		}
		reveal = reveal[6:]
		if err := c.Check(reveal); err != nil {
			r.Fatal(err)
		}
		root, from, err := c.Open(reveal)
		if err != nil || root != c.Root(sealed) || from != seed {
			r.Fatalf("opens to %v of seed %v, %v; want %v of %v", root, from, err, c.Root(sealed), seed)
		}
		values := c.Values(nil, reveal)
		for _, v := range c.Ranges(seed) {
			for _, b := range sealed[codec.HeaderLen+v.From : codec.HeaderLen+v.To] {
				if values[0] != float32(int8(b))*unit {
					r.Fatalf("value %v for byte %d", values[0], int8(b))
				}
				values = values[1:]
			}
		}
		if len(values) != 0 {
			r.Fatalf("%d values too many", len(values))
		}
	})
}

// Whatever byte of a reveal is another, it is refused or is of another commitment or seed.
func TestEveryByteOfARevealCounts(t *testing.T) {
	c := mixedCodec(t)
	sealed, seed := anySealed(c, 3), seedOfNumber(3)
	reveal := c.Reveal(nil, sealed, seed)
	root := c.Root(sealed)
	for i := range reveal {
		for _, flip := range []byte{1, 0x80, 0xff} {
			changed := bytes.Clone(reveal)
			changed[i] ^= flip
			if r, s, err := c.Open(changed); err == nil && r == root && s == seed {
				t.Fatalf("byte %d xor %#x: still opens to the root", i, flip)
			}
		}
	}
}

// Who has kept only what another seed draws cannot answer.
func TestRevealsOfAnotherSeedDoNotPass(t *testing.T) {
	c := mixedCodec(t)
	sealed := anySealed(c, 4)
	mine := bytes.Clone(sealed)
	clear(mine[codec.HeaderLen:])
	for _, r := range c.Ranges(seedOfNumber(1)) {
		copy(mine[codec.HeaderLen+r.From:codec.HeaderLen+r.To], sealed[codec.HeaderLen+r.From:])
	}
	root, seed, err := c.Open(c.Reveal(nil, mine, seedOfNumber(2)))
	if err != nil || seed != seedOfNumber(2) || root == c.Root(sealed) {
		t.Errorf("root %v, seed %v, error %v", root, seed, err)
	}
	forged := c.Reveal(nil, sealed, seedOfNumber(1))
	seed = seedOfNumber(2)
	copy(forged[codec.HeaderLen:], seed[:])
	if root, _, err := c.Open(forged); err == nil && root == c.Root(sealed) {
		t.Error("the slice of one seed passes for that of another")
	}
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

// Apply moves parameters on the slice and nowhere else, against the values; a state slice carries all of it.
func TestStateSlicesCarryAWindow(t *testing.T) {
	c := mixedCodec(t)
	seed := seedOfNumber(6)
	params := normals(6, c.n)
	before := slices.Clone(params)
	reveals := [][]byte{c.Reveal(nil, anySealed(c, 1), seed), c.Reveal(nil, anySealed(c, 2), seed), c.Reveal(nil, anySealed(c, 3), seed)}
	if err := c.Apply(params, reveals, .01); err != nil {
		t.Fatal(err)
	}
	drawn := make([]bool, c.n)
	moved := 0
	for _, r := range c.Ranges(seed) {
		for i := r.From; i < r.To; i++ {
			drawn[i] = true
			if params[i] != before[i] {
				moved++
			}
		}
	}
	if moved == 0 {
		t.Error("nothing moved")
	}
	for i := range params {
		if !drawn[i] && params[i] != before[i] {
			t.Fatalf("element %d moved, which is not in the slice", i)
		}
	}
	late := slices.Clone(before)
	state := c.StateSlice(params, seed)
	if len(state) > c.StateSliceLen() {
		t.Errorf("state slice of %d bytes, at most %d", len(state), c.StateSliceLen())
	}
	if err := c.PatchState(late, state); err != nil || !slices.Equal(late, params) {
		t.Errorf("who missed the window does not reconverge: %v", err)
	}
	for _, bad := range [][]byte{
		nil, state[:headLen-1], state[:len(state)-4], append(bytes.Clone(state), 0, 0, 0, 0), func() []byte {
			b := bytes.Clone(state)
			copy(b[headLen+4:], []byte{0, 0, 0xc0, 0x7f})
			return b
		}(), append(bytes.Clone(c.sealed[:]), state[codec.HeaderLen:]...),
	} {
		late := slices.Clone(before)
		if err := c.PatchState(late, bad); err == nil || !slices.Equal(late, before) {
			t.Errorf("a bad state slice of %d bytes: %v", len(bad), err)
		}
	}
}

// What a slice sent is taken out of the state, to within what rounding left, and nothing else.
func TestSettleTakesOutWhatWasSent(t *testing.T) {
	c := mixedCodec(t)
	sealed, state := encoded(t, c, 7, 6)
	before := slices.Clone(state)
	seed := seedOfNumber(7)
	c.Settle(state, seed)
	values := c.Values(nil, c.Reveal(nil, sealed, seed))
	sent := make([]float32, c.n)
	for _, r := range c.Ranges(seed) {
		values = values[copy(sent[r.From:r.To], values):]
	}
	for i := range c.n {
		if got, want := state[i], before[i]-sent[i]; got != want {
			t.Fatalf("element %d: %v left of %v, %v sent", i, got, before[i], sent[i])
		}
	}
	if !slices.Equal(state[c.n:], before[c.n:]) {
		t.Error("the mean squares changed")
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

func FuzzOpen(f *testing.F) {
	c := mixedCodec(f)
	seed := seedOfNumber(1)
	f.Add(c.Reveal(nil, anySealed(c, 1), seed))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, reveal []byte) {
		root, seed, err := c.Open(reveal)
		if (err == nil) != (c.Check(reveal) == nil) {
			t.Fatalf("Open says %v, Check %v", err, c.Check(reveal))
		}
		if err != nil {
			return
		}
		// What is well formed is what Reveal writes: put its values and proofs down again.
		again := append(append([]byte(nil), reveal[:codec.HeaderLen]...), seed[:]...)
		again = append(again, reveal[len(again):]...)
		if r, _, err := c.Open(again); err != nil || r != root {
			t.Fatalf("opened again: %v, %v; want %v", r, err, root)
		}
		if n := len(c.Values(nil, reveal)); n != c.sliceLen(seed) {
			t.Fatalf("%d values of a slice of %d", n, c.sliceLen(seed))
		}
		params := normals(1, c.n)
		if err := c.Apply(params, [][]byte{reveal}, .01); err != nil || exact.Finite(params) >= 0 {
			t.Fatalf("applied: %v, finite up to %d", err, exact.Finite(params))
		}
	})
}

func FuzzPatchState(f *testing.F) {
	c := mixedCodec(f)
	f.Add(c.StateSlice(normals(1, c.n), seedOfNumber(1)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		params := make([]float32, c.n)
		if c.PatchState(params, b) != nil {
			if !slices.Equal(params, make([]float32, c.n)) {
				t.Fatal("an error, and parameters that changed")
			}
			return
		}
		if !bytes.Equal(c.StateSlice(params, seedOf(b)), b) {
			t.Fatal("a state slice that says the same as another")
		}
	})
}

func hexSum(b []byte) string {
	h := wire.Sum("slice/test", b)
	return hex.EncodeToString(h[:8])
}
