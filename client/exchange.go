package client

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// exchange answers the questions whose answer depends on how the results of a run travel: between
// peers (peerExchange) or through buckets (bucketExchange). Everything else is the same for both.
type exchange interface {
	lineageRules

	// seed returns the seed that draws the slice of a round's results that others need. It is zero
	// where they need the whole. ok is false while nobody can know it.
	seed(round coordinator.Round) (seed wire.Hash, ok bool)

	// admits reports whether a commitment with this ID may be taken into account at all.
	admits(c *dispute.Commitment, id wire.Hash) bool

	// awaited reports whether the commitment of a member with a share in the round may still come.
	awaited(r coordinator.RoundState, member coordinator.Member) bool

	// late reports whether a commitment to a round would come too late now. note, if not empty, says
	// to a person why a computation is given up.
	late(round coordinator.Round) (note string, late bool)

	// wanted reports whether this member's commitment to the current round should be published once
	// more.
	wanted(own *dispute.Commitment) bool

	// complete reports whether all commitments that hold up the end of a round are known.
	complete(r coordinator.RoundState) bool

	// patience returns how many milliseconds to wait before asking for the same thing again, which
	// has been asked for a number of times and is asked for every ms milliseconds at most.
	patience(ms uint64, times uint32) uint64

	// whom returns which peer to ask for missing commitments of a round, if one is due to be asked.
	whom(rs *results) (to key.Public, ok bool)

	// outdated reports whether fetching the agreed parameters of a round is cheaper than waiting for
	// the results that lead there.
	outdated(agreed coordinator.Round) bool

	// needed reports whether others still count on this member after it has left.
	needed() bool
}

// lineageRules say from which optimizer state a result may begin (lineage.go).
type lineageRules interface {
	// prev returns the optimizer state from which this member's training of a step begins, and, if
	// it is not zero, the seed of the slice which is taken out of that state first.
	prev(step coordinator.Step) (state, settle wire.Hash)

	// continues reports whether the result of a step may begin from the state it names, as far as
	// this member can tell.
	continues(step coordinator.Step, c *dispute.Commitment) bool

	// endings returns the Ending of each member that has one. known is false while a commitment
	// that decides one is missing; it is then being asked for.
	endings() (list []Ending, known bool)
}

// revealer is an exchange in which a member shows a part of its result later than it commits to it.
type revealer interface {
	// reveal asks for what is due of that.
	reveal()
	// revealed takes the outcome.
	revealed(ev Revealed)

	// help asks for what is due of copies: see copies.go. lacked and found take outcomes.
	help()
	lacked(ev Lacked)
	found(ev Found)
}

// peerExchange is the exchange between peers. They gossip commitments, and serve whole results.
type peerExchange struct{ *Machine }

func (peerExchange) seed(coordinator.Round) (wire.Hash, bool) { return wire.Hash{}, true }

// admits accepts every commitment: the reports of witnesses decide which one counts.
func (peerExchange) admits(*dispute.Commitment, wire.Hash) bool { return true }

func (m peerExchange) awaited(_ coordinator.RoundState, member coordinator.Member) bool {
	return m.takesPart(member)
}

func (m peerExchange) late(round coordinator.Round) (string, bool) {
	return "", round != m.state.Round()
}

// wanted waits twice as long each time: what gossip does not bring, members ask for.
func (m peerExchange) wanted(*dispute.Commitment) bool {
	return m.reached(m.work.publishedAt + republishMs<<min(m.work.published, 4))
}

// complete waits for everybody: with overlap a round lasts until all have trained, though their
// results are attested in the next one.
func (m peerExchange) complete(r coordinator.RoundState) bool {
	rs := m.results(r.Number())
	return r.Attests() == r.Number() || !m.lacks(rs, false, &rs.unknown, m.takesPart)
}

// patience is constant: another peer is asked each time.
func (peerExchange) patience(ms uint64, _ uint32) uint64 { return ms }

// whom returns another peer each time. The first question waits, because gossip is usually faster.
func (m peerExchange) whom(rs *results) (to key.Public, ok bool) {
	if rs.askedAt == 0 && !(m.slices() && rs.number < m.state.Round()) {
		rs.askedAt = max(m.now, 1)
	}
	if !m.due(&rs.askedAt, m.patience(reAskMs, rs.asks)) {
		return to, false
	}
	peers := m.peers(rs.number+coordinator.Round(rs.asks), 1)
	if len(peers) == 0 {
		return to, false
	}
	return peers[0], true
}

func (peerExchange) outdated(coordinator.Round) bool { return false }

// needed reports whether the last own results may still be checked, or the member is in a check or
// dispute.
func (m peerExchange) needed() bool { return m.answers() }
