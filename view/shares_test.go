package view

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/runlog"
)

// A share that goes by speed is as large as the log tells, whoever is active besides.
func TestSharesAreThoseOfTheLog(t *testing.T) {
	d := &detail{active: runlog.Set{0b1111_0000, 0b11}, expected: runlog.Set{0b1011_0000, 0b10}, shares: []uint32{7, 5, 3, 1}}
	r := &round{Round: Round{Batch: 16, Active: 6}, detail: d}
	for i, want := range map[uint32]uint64{3: 0, 4: 7, 5: 5, 6: 0, 7: 3, 8: 0, 9: 1, 70: 0} {
		if got := r.sequences(coordinator.Member(i)); got != want {
			t.Errorf("member %d had %d sequences, want %d", i, got, want)
		}
	}
	d.shares = d.shares[:2] // of a log that contradicts itself
	if got := r.sequences(9); got != 0 {
		t.Errorf("a share that is not told has %d sequences", got)
	}
}
