package participant

import (
	"testing"

	"github.com/entrain-network/entrain/key"
)

// What strangers take of a gift, with as many keys as they like, is bounded, and leaves members theirs.
func TestStrangersDoNotUseUpAnOwnersUpload(t *testing.T) {
	const chunk, chunks = 1 << 18, 100
	ann := key.FromSeed([32]byte{1}).Public()
	g := &gift{model: make([]byte, chunk*chunks), state: joined(t, ann), sent: map[key.Public]uint64{}}
	take := func(k key.Public) (got int) {
		for g.allot(k, 0) && g.allot(k, chunk) {
			got++
		}
		return got
	}
	all := 0
	for i := range 1000 {
		got := take(key.Public{1, byte(i), byte(i >> 8)})
		if got > copiesPerKey*(chunks+1) {
			t.Fatalf("key %d got %d chunks of %d", i, got, chunks)
		}
		all += got
	}
	if most := (copiesOfOthers + copiesPerStart) * (chunks + 1); all > most || all < most-2*chunks {
		t.Errorf("strangers got %d chunks, want up to %d", all, most)
	}
	if len(g.sent) > all {
		t.Errorf("%d keys are remembered", len(g.sent))
	}
	if got := take(ann); got < copiesPerKey*chunks || got > copiesPerKey*(chunks+1) {
		t.Errorf("a member got %d chunks, want about %d", got, copiesPerKey*chunks)
	}
}
