package node

import (
	"testing"

	"github.com/entrain-network/entrain/wire"
)

// A member that commits to the same payload again and again must not have it forgotten with the first round it was for: the others would
// lack it when it is to be applied.
func TestPayloadOfSeveralRoundsIsKeptForTheLast(t *testing.T) {
	s := &blobs{byRoot: map[wire.Hash]*blob{}}
	root := s.putPayload(3, []byte("again"))
	if !s.keepPayload(7, root) {
		t.Fatal("a payload that is held is said to be missing")
	}
	s.putPayload(2, []byte("again"))
	s.forget(7)
	if _, ok := s.payload(root); !ok {
		t.Error("forgotten with round 3, needed for round 7")
	}
	s.forget(8)
	if _, ok := s.payload(root); ok || s.keepPayload(9, root) {
		t.Error("kept after its last round")
	}
}
