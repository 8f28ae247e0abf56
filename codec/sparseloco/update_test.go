package sparseloco

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// clipped has groups of 3 of its chunks, the last of 2.
var clipped = Config{Chunk: 50, TopK: 7, Decay: .9, OuterRate: 1, ClipChunks: 3}

func followable(t testing.TB, pool *exact.Pool) Followable {
	return Followable{newCodec(t, clipped, pool, mixed...)}
}

// payloadsOf returns what n members send. Their changes differ in length.
func payloadsOf(t rapid.TB, c *Codec, n int) (payloads [][]byte) {
	t.Helper()
	for i := range n {
		change := normals(uint64(i), c.n)
		for k := range change {
			change[k] *= float32(math.Exp2(float64(i%5 - k/100)))
		}
		payloads = append(payloads, encode(t, c, make([]float32, c.n), change))
	}
	return payloads
}

// values returns what a payload sends.
func values(t testing.TB, c *Codec, payload []byte) []float32 {
	t.Helper()
	alone, x := *c, make([]float32, c.n)
	alone.cfg.OuterRate, alone.cfg.ClipChunks, alone.spare = 1, 0, nil
	if err := alone.Apply(x, [][]byte{payload}, 0); err != nil {
		t.Fatal(err)
	}
	for i := range x {
		x[i] = -x[i]
	}
	return x
}

// meansOf returns the means of an update.
func meansOf(c *Codec, update []byte) []float32 {
	means := make([]float32, c.n)
	for i := range c.chunks {
		k := &c.chunks[i]
		unpack(means[k.from:][:k.n], update[codec.HeaderLen+k.at:][:k.meansLen()])
	}
	return means
}

// TestMeansAreTheRule computes clipped means in fractions, and compares each rounded one with it.
func TestMeansAreTheRule(t *testing.T) {
	c := newCodec(t, Config{Chunk: 1000, TopK: 60, OuterRate: 1, ClipChunks: 2}, nil, tensor.Spec{Name: "w", Shape: []int{5000}})
	var all, rounded float64
	for n := 1; n < 20; n += 6 {
		payloads := payloadsOf(t, c, n)
		var sent [][]float32
		for _, p := range payloads {
			sent = append(sent, values(t, c, p))
		}
		update, err := Followable{c}.Update(nil, payloads)
		if err != nil {
			t.Fatal(err)
		}
		means := meansOf(c, update)
		for from := 0; from < c.n; from += 2000 {
			to := min(from+2000, c.n)
			var norms []float64
			for _, v := range sent {
				var sum float64
				for _, x := range v[from:to] {
					sum += float64(x) * float64(x)
				}
				norms = append(norms, math.Sqrt(sum))
			}
			sorted := slices.Sorted(slices.Values(norms))
			median := sorted[(n-1)/2]
			for at := from; at < to; at += 1000 {
				exactly, most := make([]float64, 1000), 0.0
				for k := range exactly {
					sum := new(big.Rat)
					for i, v := range sent {
						factor := float32(1)
						if norms[i] > median {
							factor = float32(median / norms[i])
						}
						x := new(big.Rat).SetFloat64(float64(v[at+k]))
						sum.Add(sum, x.Mul(x, new(big.Rat).SetFloat64(float64(factor))))
					}
					exactly[k], _ = sum.Quo(sum, big.NewRat(int64(n), 1)).Float64()
					most = max(most, math.Abs(exactly[k]))
				}
				for k, x := range exactly {
					got := float64(means[at+k])
					if math.Abs(x) < most/(1<<(octaves+1)) {
						x = 0
					}
					if got == 0 && math.Abs(x) < most/(1<<octaves) {
						continue
					}
					if math.Abs(got-x) > math.Abs(x)/16*1.001 {
						t.Fatalf("%d payloads: a mean of %v is %v", n, x, got)
					}
					all, rounded = all+math.Abs(x), rounded+math.Abs(got)
				}
			}
		}
	}
	if math.Abs(rounded/all-1) > 3e-3 {
		t.Errorf("rounded means are %v of the exact ones on average", rounded/all)
	}
}

func TestMeansAreRounded(t *testing.T) {
	const count = 2
	sums := []int64{0, 2 << 20, -2 << 20, 3 << 20, 33 << 16, 34 << 16, 35 << 16, 38 << 16, -63 << 16, 2<<6 - 1, 2 << 6, 31 << 16}
	want := []float32{0, 1 << 20, -1 << 20, 3 << 19, 1 << 20, 1 << 20, 9 << 17, 5 << 18, -2 << 20, 0, 1 << 6, 1 << 20}
	means := make([]float32, len(sums))
	if round(means, sums, count, 0); !slices.Equal(means, want) {
		t.Errorf("means of %v, want %v", means, want)
	}
	round(means, sums, count, -126-6)
	if means[1] != 0x1p-112 || means[10] != 0x1p-126 {
		t.Errorf("means of %v", means)
	}
	if round(means, sums, count, -127-6); slices.ContainsFunc(means, func(x float32) bool { return x != 0 }) {
		t.Error("means that are too small are not nothing")
	}
}

// A third of the members cannot make a step of a group longer than the honest ones', however large
// what they send; and where they alone send something, nothing moves.
func TestAGangIsClippedInEachGroup(t *testing.T) {
	f := followable(t, nil)
	first := f.group(0)
	end := first[len(first)-1].from + first[len(first)-1].n
	honest, longest := payloadsOf(t, f.Codec, 7), 0.0
	for _, p := range honest {
		var sum float64
		for _, x := range values(t, f.Codec, p)[:end] {
			sum += float64(x) * float64(x)
		}
		longest = max(longest, math.Sqrt(sum))
	}
	lie := make([]float32, f.n)
	lie[5] = 1 << 59
	gang := slices.Repeat([][]byte{encode(t, f.Codec, make([]float32, f.n), lie)}, 3)
	update, err := f.Update(nil, append(gang, honest...))
	if err != nil {
		t.Fatal(err)
	}
	if x := meansOf(f.Codec, update)[5]; !(float64(x) > 0 && float64(x) <= 2*longest/3) {
		t.Errorf("the gang moves a weight by %v; the longest honest payload is %v", x, longest)
	}
	silent := slices.Repeat([][]byte{encode(t, f.Codec, make([]float32, f.n), make([]float32, f.n))}, 4)
	if update, err = f.Update(nil, append(gang, silent...)); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(meansOf(f.Codec, update), func(x float32) bool { return x != 0 }) {
		t.Error("a gang moves what others leave alone")
	}
}

// The largest payloads that pass Check, in any number, leave sums that an int64 holds, and a mean
// that is about what each sent.
func TestTheLargestSums(t *testing.T) {
	c := newCodec(t, Config{Chunk: 2, TopK: 2, OuterRate: 16, ClipChunks: clipMax}, nil, tensor.Spec{Name: "w", Shape: []int{2}})
	k := &c.chunks[0]
	one := subset.Signed{N: 1}
	sends := func(half uint16) []byte {
		return c.appendPayload(nil, []message{{code: k.space.Code(&one), low: half, high: half}})
	}
	p := sends(halfMax)
	params := make([]float32, 2)
	if err := c.Apply(params, slices.Repeat([][]byte{p}, codec.PayloadsMax), 0); err != nil || params[0] != -16*0x1p100 || params[1] != 0 {
		t.Errorf("the parameters are %v: %v", params, err)
	}
	j := c.get()
	j.payloads = slices.Repeat([][]byte{sends(halfMax - 1)}, codec.PayloadsMax) // almost twice 2^99
	s := &j.scratch[0]
	s.clips = slices.Repeat([]float32{1}, codec.PayloadsMax)
	if j.sum(s, k, math.Ldexp(1, unitBits-99)); s.sums[0] != 255<<(16+unitBits-7) {
		t.Errorf("a sum of %d", s.sums[0])
	}
}

// ranged returns what slice i of n needs of payloads.
func ranged(f Followable, payloads [][]byte, i, n int) (ranges [][]byte) {
	from, to := f.SliceRange(i, n)
	for _, p := range payloads {
		ranges = append(ranges, p[from:to])
	}
	return ranges
}

// sliced makes an update in n slices, each with the payloads in an order of its own.
func sliced(t rapid.TB, f Followable, payloads [][]byte, n int) []byte {
	t.Helper()
	parts := make([][]byte, n)
	for i := range parts {
		ranges := ranged(f, payloads, i, n)
		if len(ranges) > 0 {
			k := i % len(ranges)
			ranges = append(ranges[k:len(ranges):len(ranges)], ranges[:k]...)
		}
		var err error
		if parts[i], err = f.UpdateSlice(nil, ranges, i, n); err != nil {
			t.Fatal(err)
		}
		if len(parts[i]) != f.UpdateSliceMax(i, n) {
			t.Errorf("slice %d of %d has %d bytes, want %d", i, n, len(parts[i]), f.UpdateSliceMax(i, n))
		}
	}
	update, err := f.JoinUpdate([]byte("before"), parts)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimPrefix(update, []byte("before"))
}

func TestSlicesHaveTheBitsOfTheWhole(t *testing.T) {
	f := followable(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		payloads := payloadsOf(t, f.Codec, rapid.IntRange(1, 40).Draw(t, "payloads"))
		whole, err := f.Update(nil, payloads)
		if err != nil {
			t.Fatal(err)
		}
		if n := rapid.IntRange(1, f.SlicesMax()).Draw(t, "slices"); !bytes.Equal(sliced(t, f, payloads, n), whole) {
			t.Errorf("%d payloads in %d slices make another update than whole", len(payloads), n)
		}
	})
}

// A member sends bytes that are no payload: a member that has a part of them only cannot refuse the
// rest. They count as those of a member that sends nothing.
func TestAMalformedChunkSendsNothing(t *testing.T) {
	f := followable(t, nil)
	good := payloadsOf(t, f.Codec, 3)
	bad := bytes.Repeat([]byte{0xff}, f.PayloadMax())
	whole, err := f.Update(nil, append(good, encode(t, f.Codec, make([]float32, f.n), make([]float32, f.n))))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(sliced(t, f, append(good, bad), 3), whole) {
		t.Error("malformed chunks send something")
	}
	nothing := sliced(t, f, nil, 2)
	if !bytes.Equal(nothing, sliced(t, f, [][]byte{bad}, 4)) || slices.ContainsFunc(meansOf(f.Codec, nothing), func(x float32) bool { return x != 0 }) {
		t.Error("an update of nothing does something")
	}
}

func TestUpdatesAreChecked(t *testing.T) {
	f := followable(t, nil)
	payload := payloadsOf(t, f.Codec, 1)[0]
	if _, err := f.UpdateSlice(nil, [][]byte{payload}, 0, 3); err == nil {
		t.Error("a range that is too long is taken")
	}
	if _, err := f.UpdateSlice(nil, make([][]byte, codec.PayloadsMax+1), 0, 3); err == nil {
		t.Error("too many payloads are taken")
	}
	a, _ := f.UpdateSlice(nil, ranged(f, [][]byte{payload}, 0, 2), 0, 2)
	b, _ := f.UpdateSlice(nil, ranged(f, [][]byte{payload}, 1, 2), 1, 2)
	whole, err := f.JoinUpdate(nil, [][]byte{a, b})
	if err != nil || f.CheckUpdate(whole) != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(a)
	other[0]++
	if f.checkMeans(other, f.part(0, 2)) != nil {
		t.Error("a slice of means twice as large is malformed")
	}
	large, small, signed, idle, quiet := bytes.Clone(a), bytes.Clone(a), bytes.Clone(a), bytes.Clone(a), bytes.Clone(a)
	binary.LittleEndian.PutUint16(large, levelMost+1)
	binary.LittleEndian.PutUint16(small, 8)
	first := f.chunks[0].meansLen()
	clear(idle[2:first])
	signed[2+bytes.IndexByte(signed[2:first], 0)] = minusBit
	for i, v := range quiet[:first] {
		if i >= 2 && v&^minusBit == levelsMax { // no mean is the greatest
			quiet[i]--
		}
	}
	for what, parts := range map[string][][]byte{
		"none":                         nil,
		"too many":                     make([][]byte, f.SlicesMax()+1),
		"one alone":                    {a},
		"in another order":             {b, a},
		"cut off":                      {a[:len(a)-1], b},
		"an exponent that is too high": {large, b},
		"too low":                      {small, b},
		"a minus for nothing":          {signed, b},
		"an exponent for nothing":      {idle, b},
		"without the greatest":         {quiet, b},
	} {
		if out, err := f.JoinUpdate(payload[:3], parts); err == nil || !bytes.Equal(out, payload[:3]) {
			t.Errorf("slices are joined: %s", what)
		}
	}
}

// FuzzUpdate gives strangers' bytes to a follower: it refuses them and leaves the parameters alone,
// or takes them, and then no other bytes mean the same.
func FuzzUpdate(f *testing.F) {
	c := followable(f, nil)
	for n := range 4 {
		update, err := c.Update(nil, payloadsOf(f, c.Codec, n+1))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(update[codec.HeaderLen:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		update := append(slices.Clone(c.update[:]), body...)
		params := normals(3, c.n)
		kept := slices.Clone(params)
		err := c.Follow(params, update, 1e-3)
		if (err == nil) != (c.CheckUpdate(update) == nil) {
			t.Fatalf("CheckUpdate and Follow differ: %v", err)
		}
		if err != nil {
			if !slices.Equal(params, kept) {
				t.Fatal("a refused update changed the parameters")
			}
			return
		}
		again, means := slices.Clone(c.update[:]), meansOf(c.Codec, update)
		for i := range c.chunks {
			k := &c.chunks[i]
			packed := make([]byte, k.meansLen())
			pack(packed, means[k.from:][:k.n])
			again = append(again, packed...)
		}
		if !bytes.Equal(again, update) || exact.Finite(params) >= 0 {
			t.Fatal("two encodings mean the same")
		}
	})
}

// FuzzSlice sums strangers' bytes: every slice of them is well formed.
func FuzzSlice(f *testing.F) {
	c := followable(f, nil)
	from, to := c.SliceRange(1, 3)
	good := ranged(c, payloadsOf(f, c.Codec, 2), 1, 3)
	f.Add(slices.Concat(good...))
	f.Fuzz(func(t *testing.T, b []byte) {
		ranges := good
		for ; len(b) >= to-from; b = b[to-from:] {
			ranges = append(ranges, b[:to-from])
		}
		if len(ranges) > codec.PayloadsMax {
			return
		}
		slice, err := c.UpdateSlice(nil, ranges, 1, 3)
		if err != nil || c.checkMeans(slice, c.part(1, 3)) != nil {
			t.Errorf("a slice is malformed: %v", err)
		}
	})
}
