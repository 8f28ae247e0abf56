package adversary

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
)

// TestACheatForgetsWhatItHeardAsAWitness has a member hear the commitments of all in three rounds, and of one
// in the last. Once they are old, it keeps that of the least loss alone, which it goes on to state.
func TestACheatForgetsWhatItHeardAsAWitness(t *testing.T) {
	m := &member{seen: map[coordinator.Round]map[coordinator.Member]*dispute.Signed{}}
	for round := range coordinator.Round(3) {
		for i := range coordinator.Member(1000) {
			c := dispute.Commitment{Round: 1 + round, Member: i, Loss: 2000 + uint32(i+500)%1000 + uint32(round)}
			m.remember(key.Public{byte(i), byte(i >> 8), 1}, &dispute.Signed{Commitment: c})
		}
	}
	heard := func() (n int) {
		for _, of := range m.seen {
			n += len(of)
		}
		return n
	}
	m.forget(3 + keepRounds)
	if n := heard(); n != 1000 {
		t.Errorf("of 3000 commitments %d are remembered while the last round's may matter, want 1000", n)
	}
	before := m.rumour()
	m.forget(4 + keepRounds)
	if n, after := heard(), m.rumour(); n != 1 || before != 2.002 || after != before {
		t.Errorf("of 1000 old commitments %d are remembered, and the rumour is %v, want %v as before", n, after, before)
	}
}
