// Package validator decides what a validator of a run does next: which members it evaluates, and
// which scores it sends to the chain.
//
// A [Machine] is a plain value, as package client's is: it holds no clock, socket, file or lock.
// [Machine.Step] takes one [Event] and the time and returns the [Action] values to perform, in
// order; the driver (package validator/live, or a simulation) performs them and feeds every outcome
// back. After each event the machine looks at the whole situation and asks for whatever is due and
// not under way.
//
// A validator holds one model, some windows behind the miners: that of the start of the window it
// evaluates. For each window, in order (window.go):
//
//  1. While the window after it runs, members show what they committed to. It fetches what they
//     show, of all: it needs it to advance, and the median of the norms is one of the measures of
//     each.
//  2. It waits until the window is final, which is when the one after it has closed. What was
//     accepted, and what it does not get within a window from then on, not even as a copy by a
//     witness (copies.go), scores 0, and it goes on without.
//  3. It draws a sample of the members, by a secret of its own and the slice's seed, so that
//     no member knows, before or after, whether it is drawn. One that was not evaluated for long is
//     drawn more likely.
//     The driver recomputes the gradient of each and compares (package score).
//  4. It applies the accepted set that is due, and compares the hash with the agreed one
//     (follow.go). If they differ, or if a reveal is missing, it fetches the agreed model instead;
//     windows that it skips thereby are not evaluated.
//
// In the half of a period in which scores are committed to, it writes down its moving averages,
// with a salt, has them saved, and commits to them; in the other half it reveals what was saved
// (ballot.go). A crash between the two changes nothing.
package validator

import (
	"github.com/entrain-network/entrain/coordinator"
	scores "github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/wire"
)

// Config configures a machine.
type Config struct {
	Self key.Public
	// Secret determines the draws of samples and the salts of scores. Only the validator may know it,
	// and it must be the same after a restart.
	Secret wire.Hash
	Rules  score.Rules
	// Sample is the number of results of a window to evaluate; 0 means enough to evaluate each
	// member about twice a period.
	Sample uint32
	// Losses is the number of sequences on which losses are measured; 0 means none.
	Losses uint32
	// Register says that it shall take a seat if it has none, and give it up at the run's end.
	Register bool
	Payee    key.Public // of what it earns; zero: itself
	// Say, if not nil, is what it tells the chain in place of its scores of a period: validators in
	// tests lie by it.
	Say func(s coordinator.State, period uint32, honest []scores.Score) []scores.Score
}

// Times in milliseconds of the driver's clock.
const (
	refetchMs  = 2000  // before a result that could not be fetched is asked for again; see patience
	rehealMs   = 5000  // before the model is asked for again
	resubmitMs = 4000  // before a message of which nothing was heard is sent again
	reenterMs  = 30000 // before it asks for a seat, or to be paid for one, again
)

// Machine is one validator's decisions. Create it with [New]; it is not safe for concurrent use.
type Machine struct {
	cfg Config
	now uint64 // ms, of the driver's clock

	state    coordinator.State
	run      coordinator.Config
	hasState bool
	started  bool // Loaded has come

	model   model
	windows []*window // ascending, those that may still be needed
	job     job
	book    score.Book
	ballot  Ballot

	saving    bool // Save is under way
	unsaved   bool // something changed since
	saved     bool // the ballot is on disk
	askedMs   uint64
	enteredMs uint64

	out []Action
}

// New returns a machine that waits for its first state and for Loaded.
func New(cfg Config) *Machine { return &Machine{cfg: cfg} }

// Step takes one event at time nowMs (milliseconds of any monotonic clock) and returns what to do
// about it, in order.
func (m *Machine) Step(nowMs uint64, ev Event) []Action {
	m.now = max(m.now, nowMs)
	m.out = nil
	switch ev := ev.(type) {
	case StateChanged:
		m.stateChanged(ev)
	case Tick:
	case Loaded:
		m.loaded(ev)
	case Fetched:
		m.fetched(ev)
	case Evaluated:
		m.evaluated(ev)
	case Applied:
		m.applied(ev)
	case Healed:
		m.healed(ev)
	case Submitted:
		m.submitted(ev)
	case Saved:
		m.saving = false
		m.saved = m.saved || ev.OK && ev.Period == m.ballot.Period
		m.unsaved = m.unsaved || !ev.OK
	}
	m.decide()
	return m.out
}

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

// due reports whether something last asked for at time *last (0: never) may be asked for again
// after wait milliseconds. If so, it sets *last to now.
func (m *Machine) due(last *uint64, wait uint64) bool {
	if *last != 0 && m.now < *last+wait {
		return false
	}
	*last = max(m.now, 1)
	return true
}

func (m *Machine) loaded(ev Loaded) {
	m.started = true
	m.book, m.ballot = ev.Book, ev.Ballot
	m.saved = m.ballot.Period != 0
	if ev.Known {
		m.model.set(ev.Round, ev.Params)
	}
}

func (m *Machine) stateChanged(ev StateChanged) {
	m.state = ev.State
	if !m.hasState {
		m.run, m.hasState = m.state.Config(), true
	}
	m.capture()
}

// decide asks for everything that is due.
func (m *Machine) decide() {
	if !m.hasState || !m.started {
		return
	}
	m.decideSeat()
	m.fetch()
	for {
		m.decideModel()
		if !m.decideWindow() {
			break
		}
	}
	m.decideBallot()
	m.decideSave()
}

// decideSave writes down what changed, one writing at a time.
func (m *Machine) decideSave() {
	if !m.unsaved || m.saving {
		return
	}
	m.unsaved, m.saving = false, true
	m.do(Save{Record{Run: m.state.ID(), Self: m.cfg.Self, Book: m.book.Clone(), Ballot: m.ballot}})
}

// decideSeat asks for a seat if there is none, and gives it up once the run has finished and its
// last period is settled: the run then pays the stake and all that the validator earned.
func (m *Machine) decideSeat() {
	if !m.cfg.Register {
		return
	}
	_, seated := m.state.Validator(m.cfg.Self)
	running := m.state.Phase() != coordinator.Finished
	switch {
	case seated == running, seated && m.state.CountsBlocks(), !m.due(&m.enteredMs, reenterMs):
	case running:
		m.do(Submit{coordinator.RegisterValidator{Payee: m.cfg.Payee}})
	default:
		m.do(Submit{coordinator.RetireValidator{}})
	}
}

func (m *Machine) submitted(ev Submitted) {
	if ev.Err == nil {
		return
	}
	switch ev.Message.(type) {
	case coordinator.CommitScores, coordinator.RevealScores:
		m.do(Note{"the chain did not take the scores: " + ev.Err.Error()})
	case coordinator.RegisterValidator:
		m.do(Note{"the chain gave no seat: " + ev.Err.Error()})
	case coordinator.RetireValidator:
		m.do(Note{"the chain did not pay what the run owes; entrain wallet claim asks again: " + ev.Err.Error()})
	}
}
