package slice

import (
	"bytes"
	"slices"
	"testing"
)

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
