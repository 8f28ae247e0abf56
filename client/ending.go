package client

import (
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Ending is the optimizer state that a member's accepted result of an epoch's last step ended with: what its next one may begin from, in this run
// or in another that goes on from the checkpoint.
type Ending struct {
	Member key.Public
	State  wire.Hash
}

// endings are those of all members who have one. complete is false while a commitment that tells is not known; it is then being asked for.
//
// In a run of buckets nobody is told, since nobody judges by it.
func (m *Machine) endings() (list []Ending, complete bool) {
	if m.bucketed() {
		return nil, true
	}
	if m.chain.step == 0 || m.chain.step != m.state.Step() {
		return nil, false
	}
	rs := m.find(m.chain.round)
	missing := make([]bool, m.state.Limits().Members)
	complete = true
	for i, l := range m.chain.links {
		switch {
		case l.standing == accepted && l.key == m.state.Key(uint32(i)):
			list = append(list, Ending{l.key, l.state})
		case l.standing == unnamed && (rs == nil || !m.split(rs, uint32(i))):
			missing[i], complete = true, false
		}
	}
	if !complete && rs != nil {
		m.askMissing(rs, func(i uint32) bool { return missing[i] })
	}
	return list, complete
}

// endingsPatience is how long a checkpoint waits for them, in milliseconds, at most half of the cooldown.
const endingsPatience = 5000

// resumes is the optimizer state from which a member's first result of the run may begin, besides the fresh one.
func (m *Machine) resumes(member key.Public) (state wire.Hash, ok bool) {
	state, ok = m.cfg.States[member]
	return state, ok
}
