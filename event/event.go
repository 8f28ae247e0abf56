// Package event names what participants of a run report to the people and programs that watch them.
//
// Each kind of event is a small struct. Drivers (packages node and validator/live) make them;
// package runlog writes them to disk, package view and the windows above it show them, and commands
// print them as JSON ([Marshal]).
package event

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// Event is one thing that happened at a participant. Kind is the name of its type in logs and JSON.
type Event interface{ Kind() string }

// State reports that the run's state changed. Status and Points are the participant's own; Status
// is empty while it is not a member.
type State struct {
	Phase   string            `json:"phase,omitempty"`
	Epoch   coordinator.Epoch `json:"epoch,omitempty"`
	Round   coordinator.Round `json:"round,omitempty"`
	Step    coordinator.Step  `json:"step,omitempty"`
	Steps   coordinator.Step  `json:"steps,omitempty"` // in all
	Members uint32            `json:"members,omitempty"`
	Status  string            `json:"status,omitempty"`
	Points  uint64            `json:"points,omitempty"`
	Params  wire.Hash         `json:"params"` // agreed on last

	// Snapshot is the whole state. It is shared and must not be changed; no encoding contains it.
	Snapshot *ledger.Snapshot `json:"-"`
}

// Loaded reports that a starting participant found parameters. Source says where, in words.
type Loaded struct {
	Round  coordinator.Round `json:"round,omitempty"`
	Params wire.Hash         `json:"params,omitzero"`
	Source string            `json:"text,omitempty"`
}

// Peers reports with how many other members there is a connection, and of how many the addresses
// are known.
type Peers struct {
	Connected uint32 `json:"peers,omitempty"`
	Known     uint64 `json:"total,omitempty"`
}

// Trained reports that the participant computed its share of a round and committed to it.
type Trained struct {
	Epoch     coordinator.Epoch `json:"epoch,omitempty"`
	Round     coordinator.Round `json:"round,omitempty"`
	Step      coordinator.Step  `json:"step,omitempty"`
	Loss      float32           `json:"loss,omitempty"`
	LR        float32           `json:"lr,omitempty"`
	GradNorm  float64           `json:"grad_norm,omitempty"`
	Tokens    uint64            `json:"tokens,omitempty"`
	Seconds   float64           `json:"seconds,omitempty"`
	Bytes     uint64            `json:"bytes,omitempty"`      // of the payload
	PeakShare float64           `json:"peak_share,omitempty"` // of the machine's peak of multiply-adds
}

// TokensPerSecond returns the speed of the step, 0 if it is not known.
func (t Trained) TokensPerSecond() float64 {
	if t.Seconds <= 0 {
		return 0
	}
	return float64(t.Tokens) / t.Seconds
}

// Signed reports that the participant signed a commitment.
type Signed struct {
	Epoch      coordinator.Epoch  `json:"epoch,omitempty"`
	Round      coordinator.Round  `json:"round,omitempty"`
	Member     coordinator.Member `json:"member,omitempty"`
	Commitment wire.Hash          `json:"commitment,omitzero"` // its ID
}

// Committed reports that the commitment of another member arrived.
type Committed struct {
	Epoch      coordinator.Epoch  `json:"epoch,omitempty"`
	Round      coordinator.Round  `json:"round,omitempty"`
	Member     coordinator.Member `json:"member,omitempty"`
	Loss       float32            `json:"loss,omitempty"`
	Bytes      uint64             `json:"bytes,omitempty"`     // of its payload
	Commitment wire.Hash          `json:"commitment,omitzero"` // its ID
}

// Fetched reports that the payload of another member arrived, or the update that a round's accepted
// set makes.
type Fetched struct {
	Round   coordinator.Round  `json:"round,omitempty"`
	Member  coordinator.Member `json:"member,omitempty"`
	Update  bool               `json:"update,omitempty"` // of no member
	Seconds float64            `json:"seconds,omitempty"`
	Bytes   uint64             `json:"bytes,omitempty"`
}

// Applied reports that the participant applied an accepted set.
type Applied struct {
	Round   coordinator.Round `json:"round,omitempty"` // at whose start the new parameters are current
	Step    coordinator.Step  `json:"step,omitempty"`  // in which the set was made
	Results int               `json:"results,omitempty"`
	Params  wire.Hash         `json:"params,omitzero"`
}

// Evaluated reports the held-out loss in nats a token.
type Evaluated struct {
	Step    coordinator.Step `json:"step,omitempty"`
	HeldOut float32          `json:"heldout,omitempty"`
	Params  wire.Hash        `json:"params,omitzero"`
}

// Sample reports how the model continued a prompt.
type Sample struct {
	Step   coordinator.Step `json:"step,omitempty"`
	Params wire.Hash        `json:"params,omitzero"`
	Prompt string           `json:"prompt,omitempty"`
	Text   string           `json:"text,omitempty"`
}

// Scored reports how the model did on the items of a task. AccNorm is the accuracy by likelihood
// per byte.
type Scored struct {
	Step    coordinator.Step `json:"step,omitempty"`
	Items   int              `json:"results,omitempty"`
	Params  wire.Hash        `json:"params,omitzero"`
	Task    string           `json:"task,omitempty"`
	Acc     float64          `json:"acc,omitempty"`
	AccNorm float64          `json:"acc_norm,omitempty"`
}

// Healing reports how much of the agreed model has arrived.
type Healing struct {
	Round coordinator.Round `json:"round,omitempty"`
	Bytes uint64            `json:"bytes,omitempty"`
	Total uint64            `json:"total,omitempty"`
}

// Healed reports that the participant holds the agreed model. Source says whose it was, in words.
type Healed struct {
	Round  coordinator.Round `json:"round,omitempty"`
	Bytes  uint64            `json:"bytes,omitempty"`
	Params wire.Hash         `json:"params,omitzero"`
	Source string            `json:"text,omitempty"`
}

// Revealed reports that the slice of the participant's own result is in its bucket.
type Revealed struct {
	Round coordinator.Round `json:"round,omitempty"`
	Bytes uint64            `json:"bytes,omitempty"`
}

// Traffic reports how much the participant wrote to its bucket since the last such event.
type Traffic struct {
	Round coordinator.Round `json:"round,omitempty"`
	Bytes uint64            `json:"bytes,omitempty"`
}

// Tidied reports that the participant removed objects of windows before Round from its bucket.
type Tidied struct {
	Round   coordinator.Round `json:"round,omitempty"`
	Objects uint64            `json:"total,omitempty"`
}

// Checkpoint reports that the participant wrote a checkpoint.
type Checkpoint struct {
	Epoch    coordinator.Epoch `json:"epoch,omitempty"`
	Step     coordinator.Step  `json:"step,omitempty"`
	Params   wire.Hash         `json:"params,omitzero"`
	Manifest wire.Hash         `json:"manifest,omitzero"`
}

// Refused reports that the ledger refused a message.
type Refused struct {
	Text string `json:"text,omitempty"`
}

// Check reports that the participant, as a verifier or a tie-breaker, recomputes a member's share.
type Check struct {
	Epoch     coordinator.Epoch  `json:"epoch,omitempty"`
	Round     coordinator.Round  `json:"round,omitempty"`
	Step      coordinator.Step   `json:"step,omitempty"`
	Member    coordinator.Member `json:"member,omitempty"`
	Sequences uint64             `json:"total,omitempty"`
	Text      string             `json:"text,omitempty"`
}

// Verdict reports the outcome of a Check.
type Verdict struct {
	Epoch     coordinator.Epoch  `json:"epoch,omitempty"`
	Round     coordinator.Round  `json:"round,omitempty"`
	Step      coordinator.Step   `json:"step,omitempty"`
	Status    string             `json:"status,omitempty"` // Passed, Wrong, Unserved or None
	Member    coordinator.Member `json:"member,omitempty"`
	Sequences uint64             `json:"total,omitempty"`
	Text      string             `json:"text,omitempty"` // the difference, or why there is no result
}

// The statuses of a Verdict.
const (
	Passed   = "passed"
	Wrong    = "wrong"
	Unserved = "unserved"
	None     = "none"
)

// Dispute reports that a dispute on the ledger entered another stage.
type Dispute struct {
	Epoch  coordinator.Epoch  `json:"epoch,omitempty"`
	Round  coordinator.Round  `json:"round,omitempty"`
	Step   coordinator.Step   `json:"step,omitempty"`
	Stage  string             `json:"status,omitempty"`
	Member coordinator.Member `json:"member,omitempty"` // the accused
	Text   string             `json:"text,omitempty"`
}

// Convicted reports that the ledger convicted a member.
type Convicted struct {
	Round   coordinator.Round  `json:"round,omitempty"`
	Offence string             `json:"status,omitempty"`
	Member  coordinator.Member `json:"member,omitempty"`
	Slashed uint64             `json:"total,omitempty"` // tokens
	Text    string             `json:"text,omitempty"`  // names the proof
}

// Note is anything else that a person should know.
type Note struct {
	Text string `json:"text,omitempty"`
}

// Kept reports where the participant left the model of a finished run.
type Kept struct {
	Params wire.Hash `json:"params,omitzero"`
	Path   string    `json:"text,omitempty"`
}

// Finished reports that the run has finished. The participant serves its parameters to others for
// Seconds, or until it is stopped if they are negative.
type Finished struct {
	Seconds float64   `json:"seconds,omitempty"`
	Params  wire.Hash `json:"params,omitzero"`
}

// Process reports that a process of the demo started or ended.
type Process struct {
	Text string `json:"text,omitempty"`
}

func (State) Kind() string      { return "state" }
func (Loaded) Kind() string     { return "loaded" }
func (Peers) Kind() string      { return "peers" }
func (Trained) Kind() string    { return "trained" }
func (Signed) Kind() string     { return "signed" }
func (Committed) Kind() string  { return "committed" }
func (Fetched) Kind() string    { return "fetched" }
func (Applied) Kind() string    { return "applied" }
func (Evaluated) Kind() string  { return "evaluated" }
func (Sample) Kind() string     { return "sample" }
func (Scored) Kind() string     { return "scored" }
func (Healing) Kind() string    { return "healing" }
func (Healed) Kind() string     { return "healed" }
func (Revealed) Kind() string   { return "revealed" }
func (Traffic) Kind() string    { return "traffic" }
func (Tidied) Kind() string     { return "tidied" }
func (Checkpoint) Kind() string { return "checkpoint" }
func (Refused) Kind() string    { return "refused" }
func (Check) Kind() string      { return "check" }
func (Verdict) Kind() string    { return "verdict" }
func (Dispute) Kind() string    { return "dispute" }
func (Convicted) Kind() string  { return "convicted" }
func (Note) Kind() string       { return "note" }
func (Kept) Kind() string       { return "kept" }
func (Finished) Kind() string   { return "finished" }
func (Process) Kind() string    { return "process" }
