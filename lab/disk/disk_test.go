package disk

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator"
)

// TestBegunStatesAreFew has a member miss rounds: the states of the ones before do not stay.
func TestBegunStatesAreFew(t *testing.T) {
	const keep = 2
	var d Disk
	for _, round := range []coordinator.Round{1, 2, 5, 6, 9, 12, 15} {
		if err := d.SaveBegun(round, keep, []float32{float32(round)}); err != nil {
			t.Fatal(err)
		}
		if len(d.begun) > keep || d.begun[round] == nil {
			t.Errorf("after round %d there are %d states, want at most %d and that of the round", round, len(d.begun), keep)
		}
	}
}
