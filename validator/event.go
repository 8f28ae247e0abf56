package validator

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	scores "github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/wire"
)

// An Event is something that happened outside the machine. Every action that can end, in success or
// failure, ends in one.
type Event interface{ event() }

// StateChanged brings a newer state of the run. The machine keeps the state and never writes to it.
type StateChanged struct{ State coordinator.State }

// Tick reports that time has passed. Drivers send it several times a second.
type Tick struct{}

// Loaded ends the start. The driver holds the parameters with the hash Params, of the start of
// round Round (0: the run's initial ones), or none if Known is false. Book and Ballot are what was
// saved last, zero if nothing was.
type Loaded struct {
	Known  bool
	Round  coordinator.Round
	Params wire.Hash
	Book   score.Book
	Ballot Ballot
}

// Fetched ends a Fetch action. OK means that the driver holds commitment and reveal, and that both
// are what the chain and the seed require. Norm is that of the reveal's values.
type Fetched struct {
	Window coordinator.Round
	Member coordinator.Member
	OK     bool
	Norm   float64
}

// Evaluated ends an Evaluate action. OK is false if nothing is known of the result, for a reason
// that is not its author's.
type Evaluated struct {
	Window   coordinator.Round
	Member   coordinator.Member
	OK       bool
	Evidence score.Evidence
}

// Applied ends an Apply action: the driver holds the parameters of the start of round To.
type Applied struct {
	To     coordinator.Round
	Params wire.Hash
	OK     bool
}

// Healed ends a Heal action.
type Healed struct {
	Round  coordinator.Round
	Params wire.Hash
	OK     bool
}

// Submitted ends a Submit action: Err is nil when the message is in a block and was accepted.
type Submitted struct {
	Message coordinator.Message
	Err     error
}

// Saved ends a Save action of a record whose ballot is of that period.
type Saved struct {
	Period uint32
	OK     bool
}

func (StateChanged) event() {}
func (Tick) event()         {}
func (Loaded) event()       {}
func (Fetched) event()      {}
func (Evaluated) event()    {}
func (Applied) event()      {}
func (Healed) event()       {}
func (Submitted) event()    {}
func (Saved) event()        {}

// An Action is something that the driver is to do.
type Action interface{ action() }

// Fetch gets a member's commitment and reveal of a window, and keeps both until Forget. It looks
// for a copy in the buckets of From, one after the other, and then in the member's own.
type Fetch struct {
	Window     coordinator.Round
	Member     coordinator.Member
	Key        key.Public // the member's
	Commitment wire.Hash  // its ID, as it is on the chain
	Seed       wire.Hash  // of the slice
	From       []key.Public
}

// Evaluate recomputes a member's gradient on the held parameters and compares it with what the
// member revealed. Assigned are sequences of the share, and Random as many that no member was
// given. The loss on both is measured before and after the reveal alone is applied, unless they are
// nil.
type Evaluate struct {
	Window           coordinator.Round
	Step             coordinator.Step
	Member           coordinator.Member
	Params           wire.Hash // of the held parameters
	Spans            []batch.Span
	Assigned, Random []batch.Span
	Median           float64
}

// Apply makes the parameters of the start of round To from those of the round before, by the
// reveals of these members in this order.
type Apply struct {
	To, Window coordinator.Round
	Step       coordinator.Step // Window and Step are those the reveals are of
	Members    []coordinator.Member
}

// Heal gets the parameters that the run agreed on for the start of a round. Held is the round for
// whose start the driver holds the agreed parameters, 0 if it does not.
type Heal struct {
	Round  coordinator.Round
	Params wire.Hash
	Held   coordinator.Round
}

// Submit sends a message to the run's coordinator, with the validator's stake if it asks for a
// seat.
type Submit struct{ Message coordinator.Message }

// Save writes the record down, in place of the one before. It must be durable when Saved comes.
type Save struct{ Record Record }

// Forget drops commitments and reveals of windows before Before.
type Forget struct{ Before coordinator.Round }

// Scored reports the outcome of one evaluation, for the log from which explanations are made.
type Scored struct {
	Window   coordinator.Round  `json:"window"`
	Member   coordinator.Member `json:"member"`
	Key      key.Public         `json:"key"`
	Score    float64            `json:"score"`
	Verdict  score.Verdict      `json:"verdict"`
	Evidence score.Evidence     `json:"evidence"`
	Average  float64            `json:"average"` // after it
}

// Balloted reports the scores that are sent to the chain for a period.
type Balloted struct {
	Period uint32
	Scores []scores.Score
}

// Note reports something that a person should know.
type Note struct{ Text string }

func (Fetch) action()    {}
func (Evaluate) action() {}
func (Apply) action()    {}
func (Heal) action()     {}
func (Submit) action()   {}
func (Save) action()     {}
func (Forget) action()   {}
func (Scored) action()   {}
func (Balloted) action() {}
func (Note) action()     {}
