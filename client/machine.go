// Package client decides what one participant of a run does next.
//
// A [Machine] is a plain value: it holds no clock, socket, file or lock. [Machine.Step] takes
// [Event] values and the time and returns the [Action] values to perform, in order. The driver
// (package node, or a simulation) performs them and feeds every outcome back as the next event.
// The machine keeps no queue of intentions: after each event it looks at the whole situation
// (the run's state, the parameters it holds, the results it knows) and asks for whatever is due
// and not under way. So an event that is lost, repeated or late costs time and nothing else.
//
// Its duties, in the order of a round:
//
//   - membership: join, join again after having been dropped, withdraw on stopping (member.go);
//     state its speed (speed.go);
//   - the model: bring the parameters to the start of the current round by applying accepted sets,
//     compare their hash with the one that the witnesses agreed on, and fetch the agreed model when
//     they differ or the sets are gone (model.go);
//   - training: compute this member's share, from the optimizer state it may begin with
//     (lineage.go), and commit to it (train.go); in a run of buckets, reveal the slice that the
//     next window draws (bucket.go);
//   - results: learn the commitments of others, fetch and check their payloads (results.go), or
//     follow those who did (follow.go), or sum a slice of them (slices.go);
//   - witnessing: report what it holds when elected (witness.go);
//   - verifying: compute again the shares it was drawn to check, give the verdict, and see disputes
//     through (cases.go, verify.go, argue.go); prove it when a member signs two commitments for one
//     round (fraud.go).
//
// What differs between runs of peers and runs of buckets is behind one interface (exchange.go).
package client

import (
	"math"

	"github.com/entrain-network/entrain/client/pace"
	"github.com/entrain-network/entrain/client/table"
	"github.com/entrain-network/entrain/client/underway"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Config configures a machine.
type Config struct {
	Self       key.Public
	PayloadMax uint32 // largest payload the run's codec can make, in bytes
	// Update and UpdateMax are the lengths of the shortest and the longest update of an accepted set,
	// in bytes, in a run of followers; 0 in others.
	Update, UpdateMax uint64
	// Aggregators, in a run of slices, is the least number of members that sum each slice; 0 in
	// others. SlicesMax is the most slices that an update can be made of.
	Aggregators, SlicesMax uint32
	// States holds, in a run that resumes another, the optimizer state from which a member's first
	// result may begin, besides the fresh one.
	States map[key.Public]wire.Hash
	Speed  uint32 // tokens a second by a trial; 0: not known
	Common Common // nil means Alone
	Light  bool   // states can be light: see Watch
}

// Machine is one participant's decisions. Create it with [New]; it is not safe for concurrent use.
type Machine struct {
	cfg Config
	now uint64 // ms, of the driver's clock

	state    coordinator.State
	run      coordinator.Config // of the state; it never changes
	hasState bool
	light    bool // the state lacks filters
	still    bool // nothing is due because of it
	watched  Watch
	stopping bool

	member  membership
	model   model
	work    work
	lineage lineage
	rounds  []*results  // ascending by number, the last few rounds
	found   [8]*results // of rounds, by their number
	fetches underway.Requests
	seats   table.Seats
	// reconsiders says that the events may change which candidates can be fetched, or that time has
	// passed.
	reconsiders bool
	turns       uint64 // events so far but for time, what others send, and states that moved nothing
	settledAt   uint64 // the turn in which settle looked back
	wakeAt      uint64
	witness     reports
	pace        pace.Pace
	speedAt     uint64
	saved       coordinator.Epoch // epoch whose checkpoint was asked for
	saving      saving
	// loadedState is the optimizer state that the driver started with, zero if it was the fresh one.
	loadedState wire.Hash
	exchange    exchange // set with the first state

	wholeTo coordinator.Round // to which light states do not suffice
	reports []change.Reports  // of the state
	filters change.Rebuilt    // that were made again of these

	aheadMs int64 // of this machine's clock, before the ledger's
	cases   []*openCase
	duties  []*openCase // those in which this member may have to act
	caseOf  map[Share]*openCase
	unread  bool // a state, or a commitment that a case lacks, has come since the cases were named
	// shunned are those that named a wrong update, until that round.
	shunned  map[key.Public]coordinator.Round
	retained Retain
	retains  bool // Retain was asked for
	// Something has happened since then that may change what to retain.
	unretained bool
	frauds     []fraud
	expelled   bool

	out []Action
	ids []wire.Hash // memory of selected
}

// New returns a machine that waits for its first state and for Loaded.
func New(cfg Config) *Machine {
	if cfg.Common == nil {
		cfg.Common = Alone{}
	}
	return &Machine{cfg: cfg, caseOf: map[Share]*openCase{}}
}

// Step takes events at time nowMs (milliseconds of any monotonic clock), as if all had come before
// it decides once, and returns what to do about them, in order. Results of a large run come many at
// a time, and deciding takes longer than taking one.
func (m *Machine) Step(nowMs uint64, events ...Event) []Action {
	m.now = max(m.now, nowMs)
	m.out, m.reconsiders = nil, false
	matters := false
	for _, ev := range events {
		m.take(ev)
		matters = matters || m.matters(ev)
	}
	if !matters && len(m.out) == 0 {
		return nil
	}
	m.wakeAt = math.MaxUint64
	m.decide()
	// Where states are light there are many members, and they sleep until something is due. Others
	// look again at once.
	if !m.reconsiders || !m.light && len(m.out)+len(m.duties)+len(m.frauds) > 0 || m.slices() || m.run.Exchange == coordinator.Buckets {
		m.wakeAt = m.now
	}
	return m.out
}

// Wake returns the time by which the machine needs a Tick. Unless another event comes, it asks for
// nothing before.
func (m *Machine) Wake() uint64 { return m.wakeAt }

// take takes one event.
func (m *Machine) take(ev Event) {
	switch ev.(type) {
	case Tick:
		m.reconsiders = true
	case CommitmentReceived, PayloadFetched, Found, HeldShown, SliceNamed:
		m.witness.waits = false
	default:
		m.witness.waits, m.unretained, m.reconsiders = false, true, true
		if s, ok := ev.(StateChanged); !ok || !m.hasState || m.moved(s.State) || m.light && (!s.Light || len(s.Reports) > len(m.reports)) {
			m.turns++
		}
	}
	switch ev := ev.(type) {
	case StateChanged:
		m.stateChanged(ev)
	case Tick:
	case Loaded:
		m.model.loaded(ev)
		m.loadedState = ev.State
		m.resume(ev)
		m.recall(ev.Cases)
	case CommitmentReceived:
		m.received(ev)
		m.claim(ev)
	case SpansReceived:
		m.assigned(ev.Spans)
	case Trained:
		m.trained(ev)
	case PayloadFetched:
		m.fetched(ev)
	case UpdateNamed:
		m.updateNamed(ev)
	case UpdateMade:
		m.updateMade(ev)
	case HeldShown, SliceSummed, SliceNamed, SliceFetched:
		m.aggregated(ev)
	case UpdateFetched:
		m.updateFetched(ev)
	case Applied:
		m.applied(ev)
	case Healed:
		m.healed(ev)
	case Submitted:
		m.submitted(ev)
		m.verdictSubmitted(ev)
		m.moveSubmitted(ev)
	case Revealed:
		if r, ok := m.exchange.(revealer); ok {
			r.revealed(ev)
		}
	case Lacked:
		if r, ok := m.exchange.(revealer); ok {
			r.lacked(ev)
		}
	case Found:
		if r, ok := m.exchange.(revealer); ok {
			r.found(ev)
		}
	case Verified:
		m.verified(ev)
	case Argued:
		m.argued(ev)
	case Saved:
		m.checkpointSaved(ev)
	case Stopping:
		m.stopping = !ev.Not
	}
}

// matters reports whether anything may be due because of an event that was taken. To a member that
// follows, commitments that it only hears do not matter, nor do the first answers about an update,
// nor states in which only the disputes of others have moved on.
func (m *Machine) matters(ev Event) bool {
	if !m.light || m.seated() || m.slices() || m.lineage.all {
		return true
	}
	switch ev := ev.(type) {
	case CommitmentReceived:
		c := &ev.Signed.Commitment
		rs := m.find(c.Round)
		return ev.Signer == m.cfg.Self || m.caseOf[Share{Round: c.Round, Member: c.Member}] != nil ||
			rs != nil && (rs.accepting != nil || m.reads(rs))
	case UpdateNamed:
		if rs := m.find(ev.Round); rs != nil {
			_, enough := rs.follow.choose()
			return enough || rs.follow.split() || rs.follow.askedAt == 0
		}
		return false
	case StateChanged:
		return !m.still
	}
	return true
}

// Round returns the round at whose start the held parameters were current, and their hash; ok is
// false while there are none.
func (m *Machine) Round() (round coordinator.Round, params wire.Hash, ok bool) {
	return m.model.round, m.model.hash, m.model.known
}

// Needed reports whether others still count on this member after it has left: the checks of its
// last results are still to be drawn, or it is in a check or dispute; in a run of buckets, its last
// result is not revealed yet.
func (m *Machine) Needed() bool {
	return m.hasState && m.member.known && !m.expelled && m.exchange.needed()
}

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

func (m *Machine) stateChanged(ev StateChanged) {
	s, before := ev.State, coordinator.Round(0)
	if ev.TimeMs != 0 {
		m.aheadMs = int64(m.now) - int64(ev.TimeMs)
	}
	if m.hasState {
		before = m.state.Round()
	}
	if !m.hasState {
		m.run = s.Config()
		m.exchange = peerExchange{m}
		if m.run.Exchange == coordinator.Buckets {
			m.exchange = &bucketExchange{Machine: m}
		}
	}
	m.still = m.light && ev.Light && !m.moved(s) && len(m.cases) == 0 && m.state.Status(m.member.index) == s.Status(m.member.index)
	m.hasState, m.light, m.reports = true, ev.Light, ev.Reports
	if m.light {
		s = m.filters.Into(s)
	}
	m.state = s
	if i := m.member.index; !m.member.known || i >= s.Count() || s.Key(i) != m.cfg.Self {
		m.member.index, m.member.known = s.Find(m.cfg.Self)
	}
	if before > 0 && s.Round() > before+1 { // it was cut off: its own results may be checked since
		m.readCases()
		m.nameCases()
	}
	if s.Round() > before {
		m.enterRound(s.Round())
	}
	m.judgeUpdates()
	m.readCases()
	m.still = m.still && m.member.known && len(m.cases) == 0
	m.unread = true
}

// moved reports whether the run has moved on in a newer state. A member that joins meanwhile takes
// part from the next epoch on.
func (m *Machine) moved(s coordinator.State) bool {
	o := m.state
	return s.Round() != o.Round() || s.Phase() != o.Phase() || s.Epoch() != o.Epoch()
}

// ledgerMs estimates the ledger's time: that of the newest state, and what has passed since.
func (m *Machine) ledgerMs() uint64 { return uint64(int64(m.now) - m.aheadMs) }

// decide asks for everything that is due.
func (m *Machine) decide() {
	if !m.hasState {
		return
	}
	m.settle()
	if m.unread {
		m.unread = false
		m.nameCases()
	}
	m.decideMembership()
	m.decideSpeed()
	if m.model.started && !m.expelled {
		m.decideRound()
		m.decideCases()
		m.decideFrauds()
		m.decideRetain()
	}
	if m.light {
		m.refill()
	}
	m.decideWatch()
}

// decideRound asks for what the phase of the run calls for.
func (m *Machine) decideRound() {
	switch m.state.Phase() {
	case coordinator.WaitingForMembers:
		m.syncToAgreed()
	case coordinator.Warmup:
		m.syncToAgreed()
		m.decideReady()
	case coordinator.RoundTrain, coordinator.RoundWitness:
		r, ok := m.state.At(m.state.Round())
		if !ok || !m.member.known {
			return
		}
		if x, ok := m.exchange.(revealer); ok {
			x.reveal() // also if this member has left since
		}
		if !r.Active(m.member.index) {
			return
		}
		m.catchUp()
		m.decideResults()
		m.decideSlices()
		if x, ok := m.exchange.(revealer); ok {
			x.help()
		}
		m.decideTraining(r)
		m.decideWitness(r)
	case coordinator.Cooldown:
		m.catchUp()
		m.decideSlices()
		m.decideCheckpoint()
	case coordinator.Finished, coordinator.Paused:
		m.syncToAgreed()
	}
}

// due reports whether an action that was last asked for at time *last (0: never) may be asked for
// again after wait milliseconds. If so, it sets *last to now. If not, or when it is due again, the
// machine is to be woken.
func (m *Machine) due(last *uint64, wait uint64) bool {
	if *last != 0 && !m.reached(*last+wait) {
		return false
	}
	*last = max(m.now, 1)
	m.reached(*last + wait)
	return true
}

// reached reports whether it is a time. If not, the machine is to be woken then.
func (m *Machine) reached(t uint64) bool {
	if m.now < t {
		m.wakeAt = min(m.wakeAt, t)
	}
	return m.now >= t
}
