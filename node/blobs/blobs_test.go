package blobs

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/entrain-network/entrain/wire"
)

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

// TestForgottenPayloadsFreeTheirMemory has a member be a witness once: it holds the payloads of all, and then few again.
func TestForgottenPayloadsFreeTheirMemory(t *testing.T) {
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	s, before := New(), used()
	const payloads = 100_000
	for i := range uint64(payloads) {
		var root wire.Hash
		binary.LittleEndian.PutUint64(root[:], i)
		s.PutFetched(1, root, nil)
	}
	held := used() - before
	kept := s.PutPayload(2, []byte("kept"))
	s.Forget(2)
	if left := used() - before; left > held/100 {
		t.Errorf("%d bytes for %d payloads, and %d for one of them", held, payloads, left)
	}
	if _, ok := s.Payload(kept); !ok {
		t.Error("a payload of a later round is forgotten")
	}
}
