// Package view is what windows show of a run: one plain value, [Run], that a terminal, a browser
// and a report draw in their ways.
//
// A [Fold] makes it out of the records of package runlog, whether they come from the log of a run
// that is long over, from a participant in this process, or from a chain that is merely watched:
//
//	runlog.Reader ────────────────┐
//	runlog.Writer (tee) ──────────┼──► Fold.Add ──► Fold.Run(now) ──► Run
//	ledger.Watch, runlog.Digest ──┘
//
// It is pure: the time is an argument, nothing is read or started, and the same records give the
// same value. Its memory is bounded by the constants below whatever the run's length: curves are
// downsampled ([Curve]), rounds and lines are the last ones.
//
// A Fold belongs to one goroutine. A Run shares nothing with the Fold that made it.
package view

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/runlog"
)

// Limits of what is kept.
const (
	roundsKept = 64  // finished rounds, the newest
	LinesKept  = 400 // of the log
	curveMax   = 512 // buckets of a curve: about what a wide window has columns for, twice
	tasksKept  = 16  // of evaluations; names beyond are left out
	stepsKept  = 48  // with samples: the newest, and the others about evenly along the run
	SamplesMax = 8   // of a step
	marksMax   = 256 // members of a finished round that keeps its marks
)

// Drains reports whether the open round trains nothing: it attests and applies the last results of
// an epoch.
func (r Run) Drains() bool { return r.Draining > 0 && inRounds(r.Phase) }

// Run is a run at a moment.
type Run struct {
	NowMs   uint64 `json:"now_ms"`   // the moment, in milliseconds since 1970
	SeenMs  uint64 `json:"seen_ms"`  // when the newest record was made; 0: there was none
	StateMs uint64 `json:"state_ms"` // the ledger's time at the newest state; 0: no state was seen
	Height  uint64 `json:"height"`   // of the block that changed the state last

	runlog.Head
	CountdownMs uint64 `json:"countdown_ms"` // until the deadline

	Tokens          uint64  `json:"tokens"`            // of accepted work, all members', all time
	TokensPerSecond float64 `json:"tokens_per_second"` // of accepted work, over the last rounds
	LeftMs          uint64  `json:"left_ms"`           // estimate until the last step; 0: not known

	Loss     Curve    `json:"loss,omitempty"`     // median that members state, nats a token; quartiles
	HeldOut  Curve    `json:"heldout,omitempty"`  // held-out loss, nats a token
	Speed    Curve    `json:"speed,omitempty"`    // tokens a second of accepted work, a step
	GradNorm Curve    `json:"gradnorm,omitempty"` // of the shares computed here, before clipping
	LR       Curve    `json:"lr,omitempty"`
	Payloads Curve    `json:"payloads,omitempty"` // bytes of a round's payloads seen here
	Seconds  Curve    `json:"seconds,omitempty"`  // that a round took
	Size     Curve    `json:"size,omitempty"`     // members that took part in a round
	Tasks    []Task   `json:"tasks,omitempty"`    // accuracies on tasks, by name
	Samples  []Sample `json:"samples,omitempty"`  // of texts, oldest first

	Trust   *Trust   `json:"trust,omitempty"`   // nil if nothing is checked, staked or paid
	Windows *Windows `json:"windows,omitempty"` // nil of a run without windows and scores
	Own     *Own     `json:"own,omitempty"`     // the participant that watches, if one does
	Network Network  `json:"network,omitzero"`
	Members []Member `json:"members,omitempty"` // by index
	Rounds  []Round  `json:"rounds,omitempty"`  // oldest first, at most roundsKept
	Log     []Line   `json:"log,omitempty"`     // oldest first, at most LinesKept
	Logged  uint64   `json:"logged"`            // lines there have been in all
}

// Task holds the accuracy of the model on a multiple-choice task, along the run.
type Task struct {
	Name  string `json:"name"`
	Items int    `json:"items"`
	Acc   Curve  `json:"acc"`
	Norm  Curve  `json:"acc_norm"` // by the likelihood per character
}

// Sample is a text by the model of a step.
type Sample struct {
	Step   coordinator.Step `json:"step"`
	TimeMs uint64           `json:"time_ms"`
	Who    string           `json:"who,omitempty"`
	Prompt string           `json:"prompt"`
	Text   string           `json:"text"` // after the prompt
}

// Member is one member, whatever its status.
type Member struct {
	Index    coordinator.Member `json:"index"`
	Key      string             `json:"key"`            // hex
	Name     string             `json:"name,omitempty"` // as Fold.Name was told, or as it chose
	Team     string             `json:"team,omitempty"` // that it chose
	Own      bool               `json:"own,omitempty"`
	Status   string             `json:"status"` // waiting, ready, active, dropped, withdrawn, ejected
	Role     string             `json:"role"`   // trainer, witness, "trainer, witness" or ""
	Mark     Mark               `json:"mark"`   // how far it is in that round
	Points   uint64             `json:"points"`
	Share    float64            `json:"share"` // of all points ever given
	Results  uint32             `json:"results"`
	Missed   uint8              `json:"missed"`
	Idle     uint8              `json:"idle"`
	Speed    uint32             `json:"speed"` // tokens a second, as it said last
	Loss     float32            `json:"loss"`  // of its last share; 0: not heard of
	Bytes    uint64             `json:"bytes"` // of all its payloads that came here
	Rate     float64            `json:"rate"`  // bytes a second of the last of these
	JoinedMs uint64             `json:"joined_ms"`
	LeftMs   uint64             `json:"left_ms"`
	Stake    uint64             `json:"stake"`    // tokens it loses when it is convicted
	Balance  uint64             `json:"balance"`  // tokens it was rewarded with and has not claimed
	Settled  uint64             `json:"settled"`  // points that no conviction takes any more
	Claimed  uint64             `json:"claimed"`  // points that were paid
	Doubt    uint8              `json:"doubt"`    // weight of its results in the draw of checks
	Strikes  uint8              `json:"strikes"`  // checks in a row whose inputs it did not serve
	Passed   uint32             `json:"passed"`   // checks of its results that passed
	Scored   bool               `json:"scored"`   // validators have scored it
	Score    float64            `json:"score"`    // moving average, -1 to 1
	Unvested uint64             `json:"unvested"` // reward of the last period
	Earned   uint64             `json:"earned"`   // tokens it has earned by scores in all

	Payee     string `json:"payee"`
	ReleaseMs uint64 `json:"release_ms"` // when its stake is free; 0 while it is a member

	// Only [Look] fills in these: a log does not hold them.

	Claimable uint64 `json:"claimable,omitempty"` // tokens, once the members before it were paid
	Immune    bool   `json:"immune,omitempty"`    // nobody can take its slot yet

	chosen bool // the name
}

// Better compares two members by rank, the better one first: by tokens earned and then by score
// where validators score, else by points. Those that were ejected come last.
func (r *Run) Better(a, b Member) int {
	if out := a.Status == "ejected"; out != (b.Status == "ejected") {
		if out {
			return 1
		}
		return -1
	}
	if w := r.Windows; w != nil && w.ScoreWindows > 0 {
		return cmp.Or(cmp.Compare(b.Earned, a.Earned), cmp.Compare(b.Score, a.Score))
	}
	return cmp.Compare(b.Points, a.Points)
}

// Ranked returns the members, the best first.
func (r *Run) Ranked() []Member {
	list := slices.Clone(r.Members)
	sort.SliceStable(list, func(i, j int) bool { return r.Better(list[i], list[j]) < 0 })
	return list
}

// Present reports whether the member takes part: it waits, is ready or is active.
func (m Member) Present() bool {
	return m.Status == "waiting" || m.Status == "ready" || m.Status == "active"
}

// Mark is the progress of a member's share in a round, as a letter.
type Mark byte

// The marks, in the order in which a share goes through them.
const (
	None      Mark = '.' // has no share
	Expected  Mark = 'e' // has a share
	Committed Mark = 'c' // its commitment was seen here
	Fetched   Mark = 'f' // its payload is here
	Accepted  Mark = 'a' // a quorum of witnesses holds its result
	Missed    Mark = 'm' // the round is over, and none does
	Verified  Mark = 'v' // a verifier computed it again, and it is right
	Wrong     Mark = 'x' // its author was convicted for what it did in the round
)

// MarshalText writes the letter.
func (m Mark) MarshalText() ([]byte, error) { return []byte{byte(m)}, nil }

// UnmarshalText reads the letter.
func (m *Mark) UnmarshalText(b []byte) error {
	if len(b) != 1 {
		return fmt.Errorf("mark %q: want one letter", b)
	}
	*m = Mark(b[0])
	return nil
}

// Round is one round.
type Round struct {
	Number    coordinator.Round `json:"number"`
	Epoch     coordinator.Epoch `json:"epoch"`
	Step      coordinator.Step  `json:"step"` // 0: a drain round
	OpenedMs  uint64            `json:"opened_ms"`
	ClosedMs  uint64            `json:"closed_ms"` // 0: it runs
	Batch     uint32            `json:"batch"`     // sequences
	Active    uint32            `json:"active"`    // members that took part
	Expected  uint32            `json:"expected"`  // of them, with a share
	Committed uint32            `json:"committed"` // of them, whose commitment was seen here
	OnChain   uint32            `json:"on_chain"`  // commitments on the chain, by buckets
	Accepted  uint32            `json:"accepted"`
	Checked   uint32            `json:"checked"`   // of them, drawn to be computed again
	Verified  uint32            `json:"verified"`  // of them, found right
	Convicted uint32            `json:"convicted"` // members convicted for what they did in it
	Final     bool              `json:"final"`     // it is settled what was accepted
	Quorum    uint32            `json:"quorum"`
	Attests   coordinator.Round `json:"attests"`             // the round its witnesses report; 0: none
	WitnessMs uint64            `json:"witness_ms"`          // start of RoundWitness; 0: not seen
	Seats     uint32            `json:"seats"`               // of witnesses
	Reports   uint32            `json:"reports"`             // of them, that reported
	Witnesses []Witness         `json:"witnesses,omitempty"` // not of old rounds
	Agreed    string            `json:"agreed"`              // hash that two quorums named, or ""
	Seed      string            `json:"seed"`
	Loss      float64           `json:"loss"`  // median of what members state; 0: none
	Bytes     uint64            `json:"bytes"` // of the payloads committed to, as far as seen here
	Marks     string            `json:"marks"` // a Mark for each member by index; "" if not kept
}

// Own is the participant whose records these are.
type Own struct {
	Key             string  `json:"key"` // hex; "" if not known
	Index           int     `json:"index"`
	Status          string  `json:"status"`
	Points          uint64  `json:"points"`
	Loss            float32 `json:"loss"`              // of its last share
	TokensPerSecond float64 `json:"tokens_per_second"` // while it trains
	Params          string  `json:"params"`            // hash of the parameters it holds
	PeakShare       float64 `json:"peak_share"`        // of the machine's peak; 0: not known
	PayloadBytes    uint64  `json:"payload_bytes"`     // of its last share
	Healing         float64 `json:"healing"`           // part of the model fetched, 0 to 1
	Peers           uint32  `json:"peers"`             // other members with whom there is a connection
}

// Network holds the transfers that the participant saw.
type Network struct {
	Peers          uint32     `json:"peers"`         // with whom there is a connection
	Known          uint64     `json:"known"`         // whose addresses are
	FetchedBytes   uint64     `json:"fetched_bytes"` // payloads of others
	SentBytes      uint64     `json:"sent_bytes"`    // own payloads, once each
	Fetches        uint64     `json:"fetches"`
	BytesPerSecond float64    `json:"bytes_per_second"` // fetched, over the last minute
	Transfers      []Transfer `json:"transfers"`        // the last ones, newest first
}

// Transfer is one payload, or the model, that came here.
type Transfer struct {
	TimeMs  uint64            `json:"time_ms"`
	What    string            `json:"what"`   // payload, update or model
	Member  int               `json:"member"` // whose payload; -1: none
	Round   coordinator.Round `json:"round"`
	Bytes   uint64            `json:"bytes"`
	Seconds float64           `json:"seconds"`
}

// Line is one line of the log.
type Line struct {
	TimeMs uint64 `json:"time_ms"`
	Level  string `json:"level"` // info or warn
	Who    string `json:"who,omitempty"`
	Text   string `json:"text"`
}
