package distro

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/codec"
)

// ranged returns what slice i of n needs of payloads.
func ranged(c *Codec, payloads [][]byte, i, n int) (ranges [][]byte) {
	from, to := c.SliceRange(i, n)
	for _, p := range payloads {
		ranges = append(ranges, p[from:to])
	}
	return ranges
}

// sliced makes an update in n slices, each with the payloads in an order of its own.
func sliced(t rapid.TB, c *Codec, payloads [][]byte, n int) []byte {
	t.Helper()
	parts := make([][]byte, n)
	for i := range parts {
		ranges := ranged(c, payloads, i, n)
		if len(ranges) > 0 {
			k := i % len(ranges)
			ranges = append(ranges[k:len(ranges):len(ranges)], ranges[:k]...)
		}
		var err error
		if parts[i], err = c.UpdateSlice(nil, ranges, i, n); err != nil {
			t.Fatal(err)
		}
		if len(parts[i]) > c.UpdateSliceMax(i, n) {
			t.Errorf("slice %d of %d has %d bytes, more than %d", i, n, len(parts[i]), c.UpdateSliceMax(i, n))
		}
	}
	update, err := c.JoinUpdate([]byte("before"), parts)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimPrefix(update, []byte("before"))
}

func TestSlicesHaveTheBitsOfTheWhole(t *testing.T) {
	c := mixedCodec(t)
	rapid.Check(t, func(t *rapid.T) {
		var payloads [][]byte
		for seed := range rapid.IntRange(1, 40).Draw(t, "payloads") {
			payloads = append(payloads, anyPayload(c, uint64(seed)))
		}
		whole, err := c.Update(nil, payloads)
		if err != nil {
			t.Fatal(err)
		}
		if n := rapid.IntRange(1, c.SlicesMax()).Draw(t, "slices"); !bytes.Equal(sliced(t, c, payloads, n), whole) {
			t.Errorf("%d payloads in %d slices make another update than whole", len(payloads), n)
		}
	})
}

// TestACodeOutOfRangeVotesForNothing has a member send bytes that are no payload: who has a part of
// them only cannot refuse the rest.
func TestACodeOutOfRangeVotesForNothing(t *testing.T) {
	c := mixedCodec(t)
	good := [][]byte{anyPayload(c, 1), anyPayload(c, 2)}
	bad := bytes.Repeat([]byte{0xff}, c.PayloadMax())
	for i, b := range c.table() {
		if b.shape.Valid(bad[codec.HeaderLen:], b.bit) {
			t.Fatalf("the code of block %d is valid", i)
		}
	}
	whole, err := c.Update(nil, good)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(sliced(t, c, append(good, bad), 5), whole) {
		t.Error("it votes")
	}
	// Without a vote all weights decay.
	params, alone := make([]float32, c.n), make([]float32, c.n)
	for i := range params {
		params[i] = 1
	}
	if err := c.Follow(params, sliced(t, c, [][]byte{bad}, 3), 0.5); err != nil {
		t.Fatal(err)
	}
	for i := range alone {
		alone[i] = codec.Keep(0.5, c.cfg.WeightDecay)
	}
	if !slices.Equal(params, alone) || !bytes.Equal(sliced(t, c, nil, 3), sliced(t, c, [][]byte{bad}, 2)) {
		t.Error("an update without votes does something else")
	}
}

func TestSlicesThatAreNone(t *testing.T) {
	c := mixedCodec(t)
	payload := anyPayload(c, 1)
	if _, err := c.UpdateSlice(nil, [][]byte{payload}, 0, 3); err == nil {
		t.Error("a range that is too long is taken")
	}
	if _, err := c.UpdateSlice(nil, make([][]byte, codec.PayloadsMax+1), 0, 3); err == nil {
		t.Error("too many payloads are taken")
	}
	a, _ := c.UpdateSlice(nil, ranged(c, [][]byte{payload}, 0, 2), 0, 2)
	b, _ := c.UpdateSlice(nil, ranged(c, [][]byte{payload}, 1, 2), 1, 2)
	if _, err := c.JoinUpdate(nil, [][]byte{a, b}); err != nil {
		t.Fatal(err)
	}
	for what, parts := range map[string][][]byte{
		"none":                 nil,
		"too many":             make([][]byte, c.SlicesMax()+1),
		"one alone":            {a},
		"in another order":     {b, a},
		"cut off":              {a[:len(a)-1], b},
		"with a broken run":    {append(bytes.Clone(a), 0), b},
		"a run beyond the end": {append(bytes.Clone(a), 1, 0xff, 0xff, 0x7f), b},
	} {
		if out, err := c.JoinUpdate(payload[:3], parts); err == nil || !bytes.Equal(out, payload[:3]) {
			t.Errorf("slices are joined: %s", what)
		}
	}
}

func FuzzJoinUpdate(f *testing.F) {
	c := mixedCodec(f)
	payload := anyPayload(c, 1)
	a, _ := c.UpdateSlice(nil, ranged(c, [][]byte{payload}, 0, 2), 0, 2)
	b, _ := c.UpdateSlice(nil, ranged(c, [][]byte{payload}, 1, 2), 1, 2)
	f.Add(a, b)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		update, err := c.JoinUpdate(nil, [][]byte{a, b})
		if err == nil && c.CheckUpdate(update) != nil {
			t.Error("slices are joined to no update")
		}
	})
}
