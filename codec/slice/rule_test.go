package slice

import (
	"bytes"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// What Encode does to one element, in words of the package comment.
func TestEncodeIsWhatThePackageCommentSays(t *testing.T) {
	cfg := mixedConfig
	cfg.Decay, cfg.ClipNorm = .75, 2
	c := newCodec(t, mixed, cfg, nil)
	state := make([]float32, c.StateLen())
	unsent, squares := make([]float32, c.n), make([]float32, c.n)
	for w := range 5 {
		grad := normals(uint64(w), c.n)
		for i := range grad {
			if i%7 == w {
				grad[i] = 0
			}
			grad[i] *= float32(math.Pow(10, float64(i%12-8)))
		}
		scale, err := codec.Clip(nil, grad, 2)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := c.Encode([]byte{9}, state, grad, .01)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range grad {
			squares[i] = float32(.95*squares[i]) + float32(float32(float32(scale*scale)*g)*g)
			u := float32(scale*g) / (exact.Sqrt(squares[i]) + 0x1p-60)
			if math.Abs(float64(u)) > 1.000001 {
				t.Fatalf("window %d, element %d: a gradient counts %v", w, i, u)
			}
			unsent[i] = float32(.75*unsent[i]) + u
			q := math.RoundToEven(float64(unsent[i]) * 16)
			if got := float64(int8(sealed[1+codec.HeaderLen+i])); got != max(-127, min(q, 127)) {
				t.Fatalf("window %d, element %d: %v is sent for %v", w, i, got, unsent[i])
			}
		}
		if !slices.Equal(state[:c.n], unsent) || !slices.Equal(state[c.n:], squares) {
			t.Fatalf("window %d: another state", w)
		}
	}
}

func TestValuesAreRoundedToTheNearest(t *testing.T) {
	check := func(a float32) {
		want := max(-127, min(math.RoundToEven(float64(a)*16), 127))
		if got := float64(value(a)); got != want {
			t.Fatalf("%v is sent as %v, want %v", a, got, want)
		}
	}
	for i := -3000; i <= 3000; i++ {
		a := float32(i) / 320
		check(a)
		half := float32(i) / 32 // ties, and their neighbours
		check(half)
		check(math.Nextafter32(half, 100))
		check(math.Nextafter32(half, -100))
	}
	for _, a := range []float32{0, float32(math.Copysign(0, -1)), 1e-40, -1e-40, 0x1p126, -0x1p126, math.MaxFloat32} {
		check(a)
	}
}

// What Apply does to one element, against real numbers.
func TestApplyStepsByTheRootOfTheMean(t *testing.T) {
	c := newCodec(t, []tensor.Spec{{Name: "w", Shape: []int{64}}}, Config{Compression: 4, Leaf: 16, WeightDecay: .1}, nil)
	seed := seedOfNumber(1)
	var reveals [][]byte
	sums := make([]int, 64)
	for m := range uint64(3) {
		sealed := anySealed(c, m)
		for i, b := range sealed[codec.HeaderLen:] {
			sums[i] += int(int8(b))
		}
		reveals = append(reveals, c.Reveal(nil, sealed, seed))
	}
	params := normals(1, 64)
	before := slices.Clone(params)
	if err := c.Apply(params, reveals, .25); err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Ranges(seed) {
		for i := r.From; i < r.To; i++ {
			mean := float64(sums[i]) / 16 / 3
			want := float64(before[i])*(1-.25*.1*4) - .25*math.Copysign(math.Sqrt(math.Abs(mean)), mean)
			if math.Abs(float64(params[i])-want) > 1e-6 {
				t.Errorf("element %d moved from %v to %v, want %v", i, before[i], params[i], want)
			}
		}
	}
	// The order of the members does not matter.
	again := slices.Clone(before)
	slices.Reverse(reveals)
	if err := c.Apply(again, reveals, .25); err != nil || !slices.Equal(again, params) {
		t.Errorf("another order, other parameters: %v", err)
	}
}

// A member whose values are large in a tensor counts there as one whose norm is twice the median,
// and in others in full.
func TestLargeValuesCountLess(t *testing.T) {
	c := newCodec(t, []tensor.Spec{{Name: "a", Shape: []int{64}}, {Name: "b", Shape: []int{64}}}, Config{Compression: 4, Leaf: 16}, nil)
	seed := seedOfNumber(4)
	reveal := func(a, b int8) []byte {
		sealed := append(bytes.Clone(c.sealed[:]), bytes.Repeat([]byte{byte(a)}, 64)...)
		return c.Reveal(nil, append(sealed, bytes.Repeat([]byte{byte(b)}, 64)...), seed)
	}
	for _, v := range []struct {
		reveals [][]byte
		a, b    float64 // sum of the values
	}{
		{[][]byte{reveal(10, 10), reveal(10, 10), reveal(-100, 10)}, 10 + 10 - 2*10, 30},
		{[][]byte{reveal(-100, 10), reveal(10, 10), reveal(10, 10), reveal(10, 20)}, 30 - 2*10, 50},
		{[][]byte{reveal(10, 10), reveal(10, 10), reveal(100, -101)}, 10 + 10 + 2*10, 10 + 10 - 2*10},
		{[][]byte{reveal(0, 10), reveal(0, 10), reveal(100, 10)}, 0, 30}, // nobody else says anything
		{[][]byte{reveal(1, 10), reveal(100, 10)}, 101, 20},              // of two, who knows
		{[][]byte{reveal(100, 0)}, 100, 0},
	} {
		params := make([]float32, c.n)
		if err := c.Apply(params, v.reveals, 1); err != nil {
			t.Fatal(err)
		}
		ranges := c.Ranges(seed)
		for i, sum := range []float64{v.a, v.b} {
			mean := sum / 16 / float64(len(v.reveals))
			got, want := float64(params[ranges[i].From]), -math.Copysign(math.Sqrt(math.Abs(mean)), mean)
			if math.Abs(got-want) > .08 { // weights are multiples of 1/256
				t.Errorf("%d reveals: tensor %d moved by %v, want %v", len(v.reveals), i, got, want)
			}
		}
	}
}

// However large the numbers that a member sends, and however many members, parameters stay finite
// and no step is longer than the largest value's.
func TestStepsAreBounded(t *testing.T) {
	c := mixedCodec(t)
	seed := seedOfNumber(2)
	sealed := append(bytes.Clone(c.sealed[:]), bytes.Repeat([]byte{valueMax}, c.n)...)
	reveal := c.Reveal(nil, sealed, seed)
	for _, members := range []int{1, 7, 1000} {
		params := make([]float32, c.n)
		if err := c.Apply(params, slices.Repeat([][]byte{reveal}, members), .5); err != nil {
			t.Fatal(err)
		}
		most := .5 * math.Sqrt(valueMax*unit)
		for i, x := range params {
			if math.Abs(float64(x)) > most*1.00001 {
				t.Fatalf("%d members: element %d moved by %v, more than %v", members, i, x, most)
			}
		}
	}
}

// A gradient that stays the same is followed on every coordinate, to within what rounding holds
// back, however seldom a coordinate is drawn: nothing is lost by not being sent, but what decays.
func TestNothingIsLostButWhatDecays(t *testing.T) {
	c := newCodec(t, []tensor.Spec{{Name: "w", Shape: []int{640}}}, Config{Compression: 10, Leaf: 16, Decay: 1}, nil)
	grad := normals(3, c.n)
	state := make([]float32, c.StateLen())
	sent, fed := make([]float64, c.n), make([]float64, c.n)
	for w := range uint64(120) {
		squares := slices.Clone(state[c.n:])
		sealed, err := c.Encode(nil, state, grad, .01)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range grad {
			fed[i] += float64(g / exact.Sqrt(float32(.95*squares[i])+float32(g*g)))
		}
		seed := seedOfNumber(w)
		values := c.Values(nil, c.Reveal(nil, sealed, seed))
		for _, r := range c.Ranges(seed) {
			for i := r.From; i < r.To; i++ {
				sent[i] += float64(values[0])
				values = values[1:]
			}
		}
		c.Settle(state, seed)
	}
	for i := range grad {
		if d := math.Abs(fed[i] - sent[i] - float64(state[i])); d > 1e-3 {
			t.Errorf("element %d: %v came in, %v was sent and %v is left", i, fed[i], sent[i], state[i])
		}
	}
}

// The bytes of version 1: a change of them is a change of the format.
func TestVectors(t *testing.T) {
	c := newCodec(t, []tensor.Spec{{Name: "w", Shape: []int{64}}}, Config{Compression: 4, Leaf: 16, Decay: 1, WeightDecay: .1}, nil)
	grad, state := make([]float32, 64), make([]float32, 128)
	for i := range grad {
		grad[i] = float32(i-20) / 8
	}
	var sealed []byte
	for range 3 {
		var err error
		if sealed, err = c.Encode(nil, state, grad, .01); err != nil {
			t.Fatal(err)
		}
		grad[3], grad[40] = 1, -1
	}
	seed := seedOfNumber(1)
	reveal := c.Reveal(nil, sealed, seed)
	params := normals(1, 64)
	for i := range params {
		params[i] = float32(i)
	}
	if err := c.Apply(params, [][]byte{reveal}, .01); err != nil {
		t.Fatal(err)
	}
	c.Settle(state, seed)
	root := c.Root(sealed)
	for _, v := range []struct{ what, got, want string }{
		{"sealed", hex.EncodeToString(sealed[:32]), wantSealed},
		{"root", root.String(), wantRoot},
		{"reveal", hex.EncodeToString(reveal), wantReveal},
		{"parameters", hexSum(tensor.Bytes(params)), wantParams},
		{"state", hexSum(tensor.Bytes(state)), wantState},
		{"state slice", hexSum(c.StateSlice(params, seed)), wantStateSlice},
	} {
		if v.got != v.want {
			t.Errorf("%s %s, want %s", v.what, v.got, v.want)
		}
	}
}

const (
	wantSealed = "65534431735c7c8a2b5799c3dbdbdbfddbdbdbdbdbdbdbdbdbdbdbdbdbdbdbdb"
	wantRoot   = "da7fd945ecb62afbccf336c8b64fc022de84ef6fd1b903ce78d2210fd7dfa419"
	wantReveal = "6553523190bd2d9ffc7d4783" +
		"4d1eb49a549270ccdf31f8a466ed39a603f3aa1ff41a47408ff7010b0b62d045" +
		"dbdbdbfddbdbdbdbdbdbdbdbdbdbdbdb" +
		"4ffb53834c015e32c23e7454984cf93faa361d5f89777cd5cf187c20bb49c6b3" +
		"ca2d5610e0317a94749aba81b302b9ecc3246d025d06ddcc73d3aabc371f8307"
	wantParams     = "7034616ecc720bbe"
	wantState      = "c9fcd7c5b1d5380b"
	wantStateSlice = "3729f0aa14c5c6f5"
)

func BenchmarkEncode(b *testing.B) {
	c := newCodec(b, []tensor.Spec{{Name: "w", Shape: []int{1 << 20}}}, Config{Compression: 100, Leaf: 512, Decay: 1, ClipNorm: 1}, exact.NewPool(1))
	state, grad := make([]float32, c.StateLen()), normals(1, c.n)
	var sealed []byte
	b.SetBytes(int64(4 * c.n))
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if sealed, err = c.Encode(sealed[:0], state, grad, .01); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenAndApply(b *testing.B) {
	c := newCodec(b, []tensor.Spec{{Name: "w", Shape: []int{1 << 20}}}, Config{Compression: 100, Leaf: 512, Decay: 1, ClipNorm: 1}, exact.NewPool(1))
	reveal := c.Reveal(nil, anySealed(c, 1), seedOfNumber(1))
	params := normals(1, c.n)
	b.SetBytes(int64(len(reveal)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := c.Open(reveal); err != nil {
			b.Fatal(err)
		}
		if err := c.Apply(params, [][]byte{reveal}, .01); err != nil {
			b.Fatal(err)
		}
	}
}

// Once warm, the calls of a window allocate next to nothing, however large the model.
func TestAllocations(t *testing.T) {
	pool := exact.NewPool(1)
	defer pool.Close()
	c := newCodec(t, []tensor.Spec{{Name: "w", Shape: []int{1 << 16}}}, Config{Compression: 10, Leaf: 256, Decay: 1, ClipNorm: 1}, pool)
	state, grad, params := make([]float32, c.StateLen()), normals(1, c.n), normals(2, c.n)
	sealed, seed := anySealed(c, 1), seedOfNumber(1)
	reveal := c.Reveal(nil, sealed, seed)
	reveals := [][]byte{reveal, reveal}
	var buffer []byte
	var faults []error
	note := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	for _, v := range []struct {
		what string
		most float64
		do   func()
	}{
		{"Encode", 2, func() { var err error; buffer, err = c.Encode(buffer[:0], state, grad, .01); note(err) }},
		{"Root", 0, func() { c.Root(sealed) }},
		{"Check", 0, func() { note(c.Check(reveal)) }},
		{"Open", 0, func() { _, _, err := c.Open(reveal); note(err) }},
		{"Apply", 2, func() { note(c.Apply(params, reveals, .01)) }},
		{"Settle", 0, func() { c.Settle(state, seed) }},
	} {
		if got := testing.AllocsPerRun(20, v.do); got > v.most {
			t.Errorf("%s allocates %v times, want at most %v", v.what, got, v.most)
		}
	}
	for _, err := range faults {
		t.Error(err)
	}
}
