package node

import (
	"fmt"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/ledger"
)

func (n *Node) observe(ev event.Event) { n.cfg.Observe(ev) }

func (n *Node) note(text string) { n.observe(event.Note{Text: text}) }

// observeState tells where the run and this member stand.
func (n *Node) observeState(s ledger.Snapshot) {
	st := s.State
	params, _ := st.Params()
	ev := event.State{
		Phase: st.Phase().String(), Epoch: st.Epoch(), Round: st.Round(), Step: st.Step(),
		Steps: st.Config().TotalSteps, Members: st.Present(), Params: params, Snapshot: &s,
	}
	if i, ok := st.Find(n.self); ok {
		m := st.Member(i)
		ev.Status, ev.Points = m.Status.String(), m.Points
	}
	n.observe(ev)
}

// messageName names a message as a person would.
func messageName(m coordinator.Message) string {
	switch m.(type) {
	case coordinator.Join:
		return "join"
	case coordinator.SetSpeed:
		return "speed"
	case coordinator.Withdraw:
		return "withdraw"
	case coordinator.Ready:
		return "ready"
	case coordinator.Witness:
		return "witness report"
	case coordinator.Commit:
		return "commitment"
	case coordinator.Checkpoint:
		return "checkpoint"
	case coordinator.Pass, coordinator.Accuse, coordinator.Unserved:
		return "verdict on a check"
	case coordinator.TieBreak:
		return "vote of a tie-breaker"
	case coordinator.Defend, coordinator.Reveal, coordinator.Evidence, coordinator.Concede:
		return "move in a dispute"
	case coordinator.Equivocation:
		return "proof of two commitments"
	}
	return fmt.Sprintf("%T", m)
}
