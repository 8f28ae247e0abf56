package client

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// bucketExchange is the exchange through buckets. A round is a window: it lasts a fixed number of
// blocks, and at its end the ledger has the ID of each commitment that counts. What the others need
// of a result is drawn by the seed of the next window, which nobody knew before. So a member
//
//   - sends its commitment to the ledger until the ledger shows it or the window is over;
//   - reveals the slice of its result once the next window has opened (Reveal);
//   - looks for a commitment only after the window, and only if the ledger has its ID; then for
//     what its author reveals;
//   - carries what it has not sent from one result to the next whether or not a result was
//     accepted, since nobody recomputes its optimizer state; what a slice has sent is taken out of
//     that state before the next result (Train.Settle);
//   - keeps the parameters of all rounds with open checks, since nobody serves older ones and it
//     may be called to recompute a gradient from them.
type bucketExchange struct {
	*Machine
	round   coordinator.Round // the last one that was revealed
	running coordinator.Round // being revealed, 0: none
	id      wire.Hash         // of the commitment to it
	at      uint64
	tries   uint32
	sent    sent
	helps   [2]*help // for the last rounds, the older one first
}

// sent is the seed of the slice that this member's result of a round has sent.
type sent struct {
	round coordinator.Round
	seed  wire.Hash
}

// Reveal shows the slice, drawn by Seed, of this member's own result of a round. It ends in
// Revealed.
type Reveal struct {
	Round   coordinator.Round
	Payload wire.Hash // root of the whole
	Seed    wire.Hash
}

// Revealed ends a Reveal action. Lost says that the driver no longer has the result: it was made
// before the driver started, and not kept.
type Revealed struct {
	Round coordinator.Round
	OK    bool
	Lost  bool
}

func (Reveal) action()  {}
func (Revealed) event() {}

func (m *bucketExchange) seed(round coordinator.Round) (wire.Hash, bool) {
	r, ok := m.state.At(round)
	if !ok {
		return wire.Hash{}, false
	}
	return r.SliceSeed()
}

// admits accepts the one commitment of a member whose ID the ledger has.
func (m *bucketExchange) admits(c *dispute.Commitment, id wire.Hash) bool {
	r, ok := m.state.At(c.Round)
	if !ok {
		return false
	}
	have, ok := r.Committed(c.Member)
	return ok && have == id
}

// awaited also counts members that left after they committed: a window lasts its time, so there is
// time to wait for their results.
func (m *bucketExchange) awaited(r coordinator.RoundState, member coordinator.Member) bool {
	if r.Number() == m.state.Round() && m.state.Phase() == coordinator.RoundTrain {
		return false // nobody needs it yet
	}
	_, ok := r.Committed(member)
	return ok
}

func (m *bucketExchange) late(round coordinator.Round) (string, bool) {
	return "the window is over before this member's share was computed: it is too slow for it",
		round != m.state.Round() || m.state.Phase() != coordinator.RoundTrain
}

func (m *bucketExchange) wanted(own *dispute.Commitment) bool {
	_, late := m.late(own.Round)
	return !late && !m.admits(own, own.ID())
}

// complete is always true: a window never ends early.
func (*bucketExchange) complete(coordinator.RoundState) bool { return true }

// patience doubles three times: each request costs the owner of a bucket money. A member that asks
// just before the others have revealed must ask again within the window, however short it is.
func (m *bucketExchange) patience(ms uint64, times uint32) uint64 {
	return min(ms, uint64(m.run.RoundTrainMs)/triesInWindow) << min(times, 3)
}

// triesInWindow is a window's length over the shortest patience. With it doubled three times, a
// missing object is asked for at an eighth, three eighths and seven eighths of the shortest
// windows.
const triesInWindow = 16

// whom returns nobody: each commitment is looked for in its author's bucket.
func (m *bucketExchange) whom(rs *results) (to key.Public, ok bool) {
	return to, m.due(&rs.askedAt, m.patience(reAskMs, rs.passes))
}

func (m *bucketExchange) outdated(agreed coordinator.Round) bool { return agreed > m.model.round }

// needed reports whether the last own result is on the ledger and may still be revealed, or whether
// the member has something to answer for.
func (m *bucketExchange) needed() bool {
	if m.answers() {
		return true
	}
	switch m.state.Phase() {
	case coordinator.RoundTrain, coordinator.RoundWitness:
	default:
		return false
	}
	own := &m.work.own
	return own.Round > 0 && own.Run == m.state.ID() && own.Round > m.round && own.Round+1 >= m.state.Round() && m.admits(own, own.ID())
}

// prev returns the state that the last own result ended with, whatever became of that result, and
// the seed of the slice that it has sent: zero if its commitment came too late or it was refused.
func (m *bucketExchange) prev(coordinator.Step) (state, settle wire.Hash) {
	own := &m.work.own
	if state = own.State; own.Round == 0 || own.Run != m.state.ID() || own.Member != m.member.index {
		state = m.initial()
	}
	if own.Round == 0 {
		return state, settle
	}
	r, ok := m.state.At(own.Round)
	switch {
	case !ok: // the state has let go of the round since
		if m.sent.round == own.Round {
			settle = m.sent.seed
		}
	case m.admits(own, own.ID()) && (!r.Final() || r.Accepted(own.Member)):
		settle, _ = r.SliceSeed()
	}
	return state, settle
}

// continues accepts every state: nobody recomputes it.
func (*bucketExchange) continues(coordinator.Step, *dispute.Commitment) bool { return true }

// endings names none: nobody judges by them.
func (*bucketExchange) endings() ([]Ending, bool) { return nil, true }

// reveal reveals this member's result of the window before. The next one may have been computed
// meanwhile.
func (m *bucketExchange) reveal() {
	if m.running != 0 {
		return
	}
	own := &m.work.own
	if own.Round == m.state.Round() {
		own = &m.work.before
	}
	if own.Round == 0 || own.Run != m.state.ID() || own.Member != m.member.index || own.Round <= m.round || own.Round+1 != m.state.Round() {
		return
	}
	seed, ok := m.seed(own.Round)
	if !ok || !m.admits(own, own.ID()) {
		return
	}
	m.sent = sent{own.Round, seed}
	if !m.due(&m.at, m.patience(reRevealMs, m.tries-min(m.tries, 1))) {
		return
	}
	m.running, m.id = own.Round, own.ID()
	m.tries++
	m.do(Reveal{Round: own.Round, Payload: own.Payload, Seed: seed})
}

// revealed takes the outcome of a Reveal. From then on this member's result counts as held.
func (m *bucketExchange) revealed(ev Revealed) {
	if m.running != ev.Round {
		return
	}
	m.running = 0
	if !ev.OK && !ev.Lost {
		return
	}
	m.round, m.at, m.tries = ev.Round, 0, 0
	rs := m.find(ev.Round)
	if rs == nil || !ev.OK {
		return
	}
	for k := range rs.known.Of(m.member.index) {
		c := &rs.known.Of(m.member.index)[k]
		c.held = c.held || c.id == m.id
	}
}
