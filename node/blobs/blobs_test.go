package blobs

import "testing"

// A member that commits to the same payload again and again must not have it forgotten with the first round it was for: the others would
// lack it when it is to be applied.
func TestPayloadOfSeveralRoundsIsKeptForTheLast(t *testing.T) {
	s := New()
	root := s.PutPayload(3, []byte("again"))
	if !s.KeepPayload(7, root) {
		t.Fatal("a payload that is held is said to be missing")
	}
	s.PutPayload(2, []byte("again"))
	s.Forget(7)
	if _, ok := s.Payload(root); !ok {
		t.Error("forgotten with round 3, needed for round 7")
	}
	s.Forget(8)
	if _, ok := s.Payload(root); ok || s.KeepPayload(9, root) {
		t.Error("kept after its last round")
	}
}
