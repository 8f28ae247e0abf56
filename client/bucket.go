package client

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// In a run of buckets a round is a window: it lasts a fixed number of blocks, and who has committed to a result when they are over stands
// on the ledger. What the others need of a result is drawn by the seed of the next window, which nobody knew before. So a member
//
//   - sends its commitment to the ledger, again until the ledger shows it or the window is over;
//   - reveals the slice of its result once the next window has opened (Reveal);
//   - looks for commitments when the window is over, and only for those of which the ledger has the ID; then for what they reveal;
//   - carries over what it has not sent from one result to the next whatever became of it, for nobody recomputes the optimizer's state; what the
//     slice has sent is taken out of it before the next result (Train.Settle).

// revealing is how far this member is with revealing its result.
type revealing struct {
	round   uint32                 // the last one that was revealed
	running uint32                 // round being revealed, 0 if none
	id      wire.Hash              // of the commitment to it
	before  coordinator.Commitment // the own one before the newest
	at      uint64
	tries   uint32
}

// Reveal shows the slice of this member's own result of a round: the part of it that the seed draws. It ends in Revealed.
type Reveal struct {
	Round   uint32
	Payload wire.Hash // root of the whole
	Seed    wire.Hash
}

// Revealed ends a Reveal action. Lost says that there is nothing to reveal: the result was made before this member was started, and not
// kept.
type Revealed struct {
	Round uint32
	OK    bool
	Lost  bool
}

func (Reveal) action()  {}
func (Revealed) event() {}

// bucketed says whether the run exchanges by buckets.
func (m *Machine) bucketed() bool { return m.run.Exchange == coordinator.Buckets }

// seed is what draws the slice of a round's results; it is zero in a run of peers. ok is false while nobody can know it.
func (m *Machine) seed(round uint32) (seed wire.Hash, ok bool) {
	if !m.bucketed() {
		return wire.Hash{}, true
	}
	r, ok := m.state.At(round)
	if !ok {
		return wire.Hash{}, false
	}
	return r.SliceSeed()
}

// committed says whether the ledger has the ID of a commitment; in a run of peers it has none.
func (m *Machine) committed(c *coordinator.Commitment, id wire.Hash) bool {
	r, ok := m.state.At(c.Round)
	if !ok {
		return false
	}
	have, ok := r.Committed(c.Member)
	return ok && have == id
}

// awaited says whether a commitment of a member to a round is still to come: of everybody with a share, in a run of buckets of those who
// have sent the ledger one.
func (m *Machine) awaited(r coordinator.Round, member uint32) bool {
	if !m.bucketed() {
		return true
	}
	if r.Number() == m.state.Round() && m.state.Phase() == coordinator.RoundTrain {
		return false // nobody needs it yet
	}
	_, ok := r.Committed(member)
	return ok
}

// patience is how long to wait before asking for the same thing again, after so many times. Peers are asked at a constant pace, another
// one each time; a bucket costs its owner money for each request, and is asked ever more seldom. Who asks just before the others have
// revealed must ask again within the window, however short it is.
func (m *Machine) patience(ms uint64, times uint32) uint64 {
	if !m.bucketed() {
		return ms
	}
	return min(ms, uint64(m.run.RoundTrainMs)/triesInWindow) << min(times, 3)
}

// triesInWindow is a window's length over the shortest patience: with it doubled three times, what is missing is asked for at an eighth, at
// three eighths and at seven eighths of the shortest windows.
const triesInWindow = 16

// decideReveal reveals the own result of the window before. The next one may have been computed meanwhile.
func (m *Machine) decideReveal() {
	v := &m.reveal
	if !m.bucketed() || v.running != 0 {
		return
	}
	own := &m.work.own
	if own.Round == m.state.Round() {
		own = &v.before
	}
	if own.Round == 0 || own.Run != m.state.ID() || own.Member != m.member.index || own.Round <= v.round || own.Round+1 != m.state.Round() {
		return
	}
	seed, ok := m.seed(own.Round)
	if !ok || !m.committed(own, own.ID()) {
		return
	}
	m.work.sent = sent{own.Round, seed}
	if !m.due(&v.at, m.patience(reRevealMs, v.tries-min(v.tries, 1))) {
		return
	}
	v.running, v.id = own.Round, own.ID()
	v.tries++
	m.do(Reveal{Round: own.Round, Payload: own.Payload, Seed: seed})
}

// unrevealed says whether the own last result is on the ledger, and may still be revealed.
func (m *Machine) unrevealed() bool {
	switch m.state.Phase() {
	case coordinator.RoundTrain, coordinator.RoundWitness:
	default:
		return false
	}
	own := &m.work.own
	return own.Round > 0 && own.Run == m.state.ID() && own.Round > m.reveal.round && own.Round+1 >= m.state.Round() && m.committed(own, own.ID())
}

// revealed takes what became of revealing.
func (m *Machine) revealed(ev Revealed) {
	v := &m.reveal
	if v.running != ev.Round {
		return
	}
	v.running = 0
	if !ev.OK && !ev.Lost {
		return
	}
	v.round, v.at, v.tries = ev.Round, 0, 0
	rs := m.find(ev.Round)
	if rs == nil || !ev.OK || m.member.index >= uint32(len(rs.known)) {
		return
	}
	for k := range rs.known[m.member.index] {
		c := &rs.known[m.member.index][k]
		c.held = c.held || c.id == v.id
	}
}

// settles is the seed of the slice that the own last result has sent, zero if it has sent none: its commitment came too late, or it was
// not accepted.
func (m *Machine) settles() wire.Hash {
	own := &m.work.own
	if !m.bucketed() || own.Round == 0 {
		return wire.Hash{}
	}
	r, ok := m.state.At(own.Round)
	switch {
	case !ok: // the state has let go of the round since
		if m.work.sent.round == own.Round {
			return m.work.sent.seed
		}
		return wire.Hash{}
	case !m.committed(own, own.ID()), r.Final() && !r.Accepted(own.Member):
		return wire.Hash{}
	}
	seed, _ := r.SliceSeed()
	return seed
}

// sent is what the own last result has sent.
type sent struct {
	round uint32
	seed  wire.Hash
}
