package codectest

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/exact"
)

// testParts compares Encode with its parts, on every kernel.
func testParts(t *testing.T, c codec.Disputable) {
	next := 0
	for i := range c.Blocks() {
		b := c.Block(i)
		if b.State != next {
			t.Fatalf("block %d begins at %d of the state, want %d", i, b.State, next)
		}
		next += b.Rows * b.Cols
	}
	if next != Layout.Len() {
		t.Fatalf("the blocks have %d elements, the layout %d", next, Layout.Len())
	}
	for _, kernel := range exact.Kernels() {
		w := exact.NewWorker(kernel)
		whole, parts := make([]float32, c.StateLen()), make([]float32, c.StateLen())
		for round := range uint64(3) {
			grad := random(Layout.Len(), 100, round)
			grad[round] = 0
			want := encode(t, c, whole, grad)
			if got := inParts(t, c, w, parts, grad); !bytes.Equal(got, want) || !same(parts, whole) {
				t.Fatalf("%s, round %d: the parts give another payload or state", kernel.Name(), round)
			}
		}
	}
	for _, most := range []float32{0, 1, 1e38, float32(math.Inf(1)), float32(math.NaN())} {
		state := make([]float32, c.StateLen())
		state[3] = most
		_, err := c.Encode(nil, state, make([]float32, Layout.Len()), rate)
		if got := c.CheckMagnitude(most); (got == nil) != (err == nil) {
			t.Errorf("a state of magnitude %g: CheckMagnitude says %v, Encode %v", most, got, err)
		}
	}
}

// inParts is Encode by Columns, Rows, Momentum and Code.
func inParts(t *testing.T, c codec.Disputable, w *exact.Worker, state, grad []float32) []byte {
	t.Helper()
	most, _ := c.Clipping()
	factor, err := codec.Factor(normInParts(grad), most)
	if err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, c.PayloadMax())
	header := c.Header()
	body := payload[copy(payload, header[:]):]
	for i := range c.Blocks() {
		b := c.Block(i)
		n := b.Rows * b.Cols
		x, y := make([]float32, n), make([]float32, n)
		for r := range b.Rows {
			copy(x[r*b.Cols:(r+1)*b.Cols], grad[b.Offset+r*b.Stride:])
		}
		for _, band := range [][2]int{{0, b.Cols / 3}, {b.Cols / 3, b.Cols}} {
			c.Columns(w, i, y, x, band[0], band[1])
		}
		for _, band := range [][2]int{{0, b.Rows / 2}, {b.Rows / 2, b.Rows}} {
			c.Rows(w, i, x, y, band[0], band[1])
		}
		momentum := state[b.State : b.State+n]
		c.Momentum(momentum, x, float32(rate*factor))
		subset.WriteNumber(body, b.Bit, b.Bits, c.Code(i, momentum))
	}
	return payload
}

func normInParts(v []float32) float64 {
	var sum float64
	for from := 0; from < len(v); from += codec.NormSegment {
		var s codec.Squares
		segment := v[from:min(from+codec.NormSegment, len(v))]
		cut := len(segment) / 3
		s.Add(0, segment[:cut])
		s.Add(cut, segment[cut:])
		sum += s.Sum()
	}
	return math.Sqrt(sum)
}

// testReveals opens reveals, and changes them.
func testReveals(t *testing.T, c codec.Sliceable) {
	sealed, seed := encode(t, c, make([]float32, c.StateLen()), random(Layout.Len(), 5)), windowSeed(5)
	root := c.Root(sealed)
	reveal := c.Reveal([]byte("abc"), sealed, seed)
	if !bytes.HasPrefix(reveal, []byte("abc")) {
		t.Fatal("Reveal does not append")
	}
	reveal = reveal[3:]
	if got, of, err := c.Open(reveal); err != nil || got != root || of != seed || len(reveal) != c.RevealLen() {
		t.Fatalf("a reveal of %d bytes, want %d, opens to %s and %s: %v", len(reveal), c.RevealLen(), got, of, err)
	}
	if bytes.Equal(c.Reveal(nil, sealed, windowSeed(6)), reveal) {
		t.Error("another seed reveals the same")
	}
	for at := range reveal { // nobody finds a second reveal of one root
		for _, flip := range []byte{1, 0x80, 0xff} {
			p := slices.Clone(reveal)
			p[at] ^= flip
			if got, of, err := c.Open(p); err == nil && got == root && of == seed {
				t.Fatalf("byte %d xor %#x: the reveal opens to the same root", at, flip)
			}
		}
	}
	if err := c.Apply(random(Layout.Len(), 1), [][]byte{reveal, c.Reveal(nil, sealed, windowSeed(6))}, rate); err == nil {
		t.Error("reveals of two seeds are applied together")
	}
}

// testSlices applies reveals and looks where the seed draws.
func testSlices(t *testing.T, c codec.Sliceable) {
	n, seed := Layout.Len(), windowSeed(0)
	params, drawn, count := random(n, 6), make([]bool, n), 0
	for _, r := range c.Ranges(seed) {
		if of := Layout.Tensors()[r.Tensor]; r.From < of.Offset || r.Len() < 1 || r.To > of.Offset+len(of.Of(params)) {
			t.Fatalf("range %+v is not in tensor %+v", r, of)
		}
		for i := r.From; i < r.To; i++ {
			if drawn[i] {
				t.Fatalf("position %d is drawn twice", i)
			}
			drawn[i] = true
		}
		count += r.Len()
	}
	state := make([]float32, c.StateLen())
	sealed := encode(t, c, state, random(n, 5))
	reveal := c.Reveal(nil, sealed, seed)
	if v := c.Values([]float32{1}, reveal); len(v) != 1+count || v[0] != 1 {
		t.Errorf("%d values on %d positions", len(v)-1, count)
	}
	settled := slices.Clone(state)
	c.Settle(settled, seed)
	for i := range state {
		if settled[i] != state[i] && (i >= n || !drawn[i]) {
			t.Fatalf("settling changed element %d of the state, which was not sent", i)
		}
	}
	before := slices.Clone(params)
	if err := c.Apply(params, [][]byte{reveal, body(t, c, 2)}, rate); err != nil {
		t.Fatal(err)
	}
	for i := range params {
		if params[i] != before[i] && !drawn[i] {
			t.Fatalf("element %d moved, which is not in the slice", i)
		}
	}
	late, slice := slices.Clone(before), c.StateSlice(params, seed)
	if len(slice) > c.StateSliceLen() {
		t.Errorf("a state slice of %d bytes, at most %d", len(slice), c.StateSliceLen())
	}
	if err := c.PatchState(late, slice); err != nil || !same(late, params) {
		t.Errorf("a state slice does not carry the window: %v", err)
	}
	other := slices.Clone(slice)
	other[0] ^= 1
	for _, bad := range [][]byte{nil, reveal, other, slice[:len(slice)-4], append(slices.Clone(slice), 0, 0, 0, 0)} {
		late := slices.Clone(before)
		if err := c.PatchState(late, bad); err == nil || !same(late, before) {
			t.Errorf("a bad state slice of %d bytes: %v", len(bad), err)
		}
	}
}

// testUpdates follows the updates of sets of all sizes, on every kernel, and malformed ones.
func testUpdates(t *testing.T, o codec.Options, c codec.Followable) {
	var set [][]byte
	for m := range uint64(5) {
		set = append(set, body(t, c, m))
	}
	if _, err := c.Update(nil, nil); err == nil {
		t.Error("no payloads have an update")
	}
	if dst, err := c.Update([]byte("abc"), [][]byte{set[0], nil}); err == nil || string(dst) != "abc" {
		t.Errorf("a malformed payload has an update: %v", err)
	}
	var update []byte
	for n := 1; n <= len(set); n++ {
		start := random(Layout.Len(), 8)
		start[3] = float32(math.Copysign(0, -1))
		want := slices.Clone(start)
		if err := c.Apply(want, set[:n], rate); err != nil {
			t.Fatal(err)
		}
		for i, kernel := range exact.Kernels() {
			pool := exact.NewPoolOf(1+2*i, kernel)
			f := newCodec(t, o, pool).(codec.Followable)
			made, err := f.Update([]byte("abc"), set[:n])
			if err != nil || !bytes.HasPrefix(made, []byte("abc")) || i > 0 && !bytes.Equal(made[3:], update) {
				t.Fatalf("%s: another update of %d payloads: %v", kernel.Name(), n, err)
			}
			update = made[3:]
			got := slices.Clone(start)
			if err := f.Follow(got, update, rate); err != nil || !same(got, want) {
				t.Fatalf("%s: who follows %d payloads has other parameters: %v", kernel.Name(), n, err)
			}
			pool.Close()
		}
		if err := c.CheckUpdate(update); err != nil || len(update) < c.UpdateLen() || len(update) > c.UpdateMax() {
			t.Fatalf("an update of %d bytes, want %d to %d: %v", len(update), c.UpdateLen(), c.UpdateMax(), err)
		}
	}
	params := random(Layout.Len(), 9)
	kept := slices.Clone(params)
	bad := [][]byte{nil, set[0], update[:len(update)/2], make([]byte, c.UpdateMax()+1)}
	for i := range codec.HeaderLen {
		other := slices.Clone(update)
		other[i] ^= 1
		bad = append(bad, other)
	}
	for _, b := range bad {
		if err := c.Follow(params, b, rate); err == nil || c.CheckUpdate(b) == nil || !same(params, kept) {
			t.Errorf("a bad update of %d bytes: %v", len(b), err)
		}
	}
	if c.Check(update) == nil {
		t.Error("an update passes for a payload")
	}
	if err := c.Follow(params, update, -1); err == nil || !same(params, kept) {
		t.Errorf("a negative rate: %v", err)
	}
}
