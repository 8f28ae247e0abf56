package node

import (
	"fmt"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
)

// Event is one thing that happened at a node, for people and programs that watch it. Only the fields that belong to its kind are set.
//
//	state       the run's state changed: phase, epoch, round, step, members, the node's own standing; Snapshot has all of it
//	loaded      parameters are there: from the state directory, from the seed, or from peers
//	peers       it is connected with so many other members, of so many whose addresses are known (total)
//	trained     a share was computed and committed to: loss, learning rate, gradient norm, tokens, seconds, bytes of the payload
//	signed      a commitment of its own was signed
//	committed   another member's commitment came: member, loss, bytes of its payload
//	fetched     another member's payload came: member, bytes, seconds
//	applied     an accepted set was applied: results, the new parameters' hash
//	evaluated   the held-out loss was measured
//	sample      the model of a step continued a prompt, with text
//	scored      the model of a step was scored on a task: items (results), accuracies
//	healed      the model was fetched from peers
//	revealed    the slice of its own result of a round is in its bucket: bytes
//	traffic     bytes that it has written to its bucket since it told of them last, in round
//	tidied      objects of windows before round were removed from its bucket, so many (total)
//	checkpoint  a checkpoint was written: manifest's hash
//	refused     the ledger refused a message
//	check       this member, drawn as a verifier or tie-breaker, computes a share again: member, round, step, sequences (total)
//	verdict     what came of it, in status: passed, wrong, unserved or none; text says in what the result differs
//	dispute     a dispute on the ledger went on: member (the accused), round, step, stage (status)
//	convicted   the ledger convicted a member: member, round, offence (status), tokens it lost (total); text has the proof
//	note        anything else a person should know
type Event struct {
	Kind     string  `json:"event"`
	Phase    string  `json:"phase,omitempty"`
	Epoch    uint32  `json:"epoch,omitempty"`
	Round    uint32  `json:"round,omitempty"`
	Step     uint32  `json:"step,omitempty"`
	Steps    uint32  `json:"steps,omitempty"`
	Members  uint32  `json:"members,omitempty"`
	Status   string  `json:"status,omitempty"`
	Points   uint64  `json:"points,omitempty"`
	Member   uint32  `json:"member,omitempty"` // index
	Peers    uint32  `json:"peers,omitempty"`
	Loss     float32 `json:"loss,omitempty"`
	LR       float32 `json:"lr,omitempty"`
	GradNorm float64 `json:"grad_norm,omitempty"`
	HeldOut  float32 `json:"heldout,omitempty"`
	Tokens   uint64  `json:"tokens,omitempty"`
	Seconds  float64 `json:"seconds,omitempty"`
	Bytes    uint64  `json:"bytes,omitempty"`
	Total    uint64  `json:"total,omitempty"`
	Results  int     `json:"results,omitempty"`
	Params   string  `json:"params,omitempty"`
	Manifest string  `json:"manifest,omitempty"`
	// Commitment is the ID of a commitment.
	Commitment string `json:"commitment,omitempty"`
	// PeakShare is what part of the machine's peak of multiply-adds a share was computed with.
	PeakShare float64 `json:"peak_share,omitempty"`
	Prompt    string  `json:"prompt,omitempty"`
	Task      string  `json:"task,omitempty"`
	Acc       float64 `json:"acc,omitempty"`
	AccNorm   float64 `json:"acc_norm,omitempty"`
	Text      string  `json:"text,omitempty"`

	// Snapshot is the state that an event of kind state tells of, nil in all others. It is shared: not to be written to.
	Snapshot *ledger.Snapshot `json:"-"`
}

func (n *Node) observe(ev Event) { n.cfg.Observe(ev) }

func (n *Node) note(text string) { n.observe(Event{Kind: "note", Text: text}) }

// observeState tells where the run and this member stand.
func (n *Node) observeState(s ledger.Snapshot) {
	st := s.State
	params, _ := st.Params()
	ev := Event{
		Kind: "state", Phase: st.Phase().String(), Epoch: st.Epoch(), Round: st.Round(), Step: st.Step(),
		Steps: st.Config().TotalSteps, Members: st.Present(), Params: params.String(), Snapshot: &s,
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
