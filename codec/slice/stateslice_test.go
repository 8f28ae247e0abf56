package slice

import (
	"bytes"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/codec"
)

// Apply moves parameters on the slice and nowhere else, against the values; a state slice carries
// all of it.
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
