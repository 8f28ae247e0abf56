package statefile

import (
	"bytes"
	"testing"

	"github.com/entrain-network/entrain/host"
)

// A page of changes is read to its last whole change, at most as many as were asked for.
func FuzzReadChanges(f *testing.F) {
	f.Add(bytes.Repeat([]byte{1}, 3*host.ChangeBytes), uint64(2))
	f.Add(bytes.Repeat([]byte{1}, host.ChangeBytes+5), uint64(9))
	f.Add([]byte{}, uint64(1)<<63)
	f.Fuzz(func(t *testing.T, b []byte, limit uint64) {
		want := min(uint64(len(b)/host.ChangeBytes), limit)
		if list := ReadChanges(b, limit); uint64(len(list)) != want {
			t.Errorf("%d changes from %d bytes, want %d", len(list), len(b), want)
		}
	})
}
