package node

import (
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/ledger"
)

func (n *Node) observe(ev event.Event) { n.cfg.Observe(ev) }
func (n *Node) note(text string)       { n.observe(event.Note{Text: text}) }

// observeState reports the state of the run and of this member.
func (n *Node) observeState(s ledger.Snapshot) {
	st := s.State
	params, _ := st.Params()
	ev := event.State{
		Phase: st.Phase().String(), Epoch: st.Epoch(), Round: st.Round(), Step: st.Step(),
		Steps: st.Config().TotalSteps, Members: n.roster.Present(), Params: params, Snapshot: &s,
	}
	if i, ok := n.place(st); ok {
		m := st.Member(i)
		ev.Status, ev.Points = m.Status.String(), m.Points
	}
	n.observe(ev)
}
