package runlog

import (
	"math/bits"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/event"
)

// Record is one thing that happened, or one look at the coordinator's state. Exactly one of Event,
// Standing and Heard is set.
type Record struct {
	Time time.Time
	Who  string // names the participant in a short word; "" is the one that wrote the log

	// Event is what a participant reported. Its Snapshot is not part of the log: a Standing made
	// of it follows.
	Event event.Event
	// Standing is the coordinator's state in short. Read from a log, it holds what changed since
	// the one before; the first of each file is whole. In a run of many members, counters that
	// grow with every round may lag behind.
	Standing *Standing
	// Heard sums up what came from others, in the log of a run of many members.
	Heard *Heard
}

// Standing is the part of a coordinator's state that windows show. Its rows are the
// coordinator's own types.
type Standing struct {
	Height uint64
	TimeMs uint64 // the ledger's time
	Head
	Members []Member // by index; those that changed
	Rounds  []Round  // oldest first; those that changed
	Trust   *Trust   // nil if nothing in it changed, or the run has nothing of the kind
	Windows *Windows // likewise
}

// Head describes the run as a whole. Its numbers are those of coordinator.State. It is part of the
// JSON of a view.Run, as TrustHead and WindowsHead are.
type Head struct {
	Name        string            `json:"name"`
	ID          string            `json:"id"`              // hex
	Chain       string            `json:"chain,omitempty"` // "" if unknown
	Own         string            `json:"-"`               // hex key of the writer of the log, or ""
	Steps       coordinator.Step  `json:"steps"`           // in all
	Capacity    uint32            `json:"capacity"`        // the most members
	SeqTokens   uint32            `json:"sequence_tokens"` // tokens in a sequence
	Overlap     uint8             `json:"overlap"`
	MissedMax   uint8             `json:"missed_max"`
	Phase       string            `json:"phase"`
	SinceMs     uint64            `json:"since_ms"`    // start of the phase
	DeadlineMs  uint64            `json:"deadline_ms"` // 0 if time alone does not end the phase
	Epoch       coordinator.Epoch `json:"epoch"`
	Round       coordinator.Round `json:"round"`
	Step        coordinator.Step  `json:"step"`
	Present     uint32            `json:"present"`
	Draining    uint8             `json:"draining"`
	Pausing     bool              `json:"pausing"`
	Rollbacks   uint32            `json:"rollbacks"`
	Points      uint64            `json:"points"`
	Retired     uint64            `json:"retired"` // points of members whose places went to others
	Params      string            `json:"params"`  // hash agreed last, hex
	ParamsRound coordinator.Round `json:"params_round"`
	Saved       Saved             `json:"checkpoint,omitzero"`
	Start       uint32            `json:"start_members,omitempty"` // of an epoch; 0 in old logs
}

// Saved is the checkpoint reported last. Manifest is "" if there was none.
type Saved struct {
	Epoch    coordinator.Epoch `json:"epoch"`
	Params   string            `json:"params"`
	Manifest string            `json:"manifest"`
	By       string            `json:"by"` // key
}

// Member is a place in the table of members.
type Member struct {
	Index coordinator.Member
	coordinator.MemberState
}

// Round is one of the rounds that the state keeps.
type Round struct {
	Number        coordinator.Round
	Epoch         coordinator.Epoch
	Step          coordinator.Step // 0 in a drain round
	OpenedMs      uint64
	Batch         uint32 // sequences
	Seed          string
	Agreed        string // hash of the parameters at its start, "" without a quorum
	Final         bool
	Attests       coordinator.Round // the round its witnesses report on; 0 if none
	Quorum        uint32
	Witnesses     []Witness
	Active        Set
	Expected      Set // members with a share
	Accepted      Set
	AcceptedCount uint32
	// Sequences holds the sizes of the shares of Expected, in that order. It is empty where
	// shares are equal.
	Sequences []uint32
}

// Witness is a seat in a round.
type Witness struct {
	Member   coordinator.Member
	Reported bool
	Complete bool // it held every result
}

// Trust is the part of a state about checks, disputes and tokens. Read from a log, it holds what
// changed.
type Trust struct {
	// Whole reports that Checks and Disputes list all that are open, and Convictions all that the
	// state still holds.
	Whole bool
	TrustHead
	Checks      []dispute.Check      // opened or changed
	Closed      []Share              // whose checks are no longer open
	Disputes    []dispute.Dispute    // opened or changed
	Ended       []uint32             // numbers of disputes that are over
	Convictions []dispute.Conviction // new ones, oldest first
}

// TrustHead holds the totals of a Trust. Its numbers are those of coordinator.State.
type TrustHead struct {
	Percent   uint8  `json:"percent"` // of a round's results that are checked, on average
	Stake     uint64 `json:"stake"`   // least stake of a member, in tokens
	Rate      uint64 `json:"rate"`    // tokens paid for a point
	Treasury  uint64 `json:"treasury"`
	Escrow    uint64 `json:"escrow"`
	Verified  uint64 `json:"verified"`  // points given for verifying
	Drawn     uint32 `json:"drawn"`     // checks so far
	Passed    uint32 `json:"passed"`    // checks that passed
	Disputed  uint32 `json:"disputed"`  // disputes so far
	Convicted uint32 `json:"convicted"` // convictions so far
}

// Share names the result of a member in a round.
type Share struct {
	Round  coordinator.Round
	Member coordinator.Member
}

// Windows is the part of a state about windows, scores and validators: of runs that exchange by
// buckets, or have validators. Read from a log, it holds what changed.
type Windows struct {
	Whole bool // nothing before it counts
	WindowsHead
	Commits    []Commits         // of the rounds that the state keeps
	Validators []score.Validator // all, by seat, if SeatsTold; else they are unchanged
	SeatsTold  bool
	Period     *score.Scores // the period settled last, when that is new
}

// WindowsHead holds the totals of a Windows. Its numbers are those of coordinator.State.
type WindowsHead struct {
	Buckets          bool        `json:"buckets"`         // results travel through buckets
	WindowBlocks     uint32      `json:"window_blocks"`   // in a window
	DeadlineHeight   uint64      `json:"deadline_height"` // end of the window, or 0
	Window           uint32      `json:"window"`
	ScoreWindows     uint32      `json:"score_windows"` // in a period; 0: no scores
	Current          uint32      `json:"current"`       // the running period
	Scoring          uint32      `json:"scoring"`       // a period; 0: none
	Stage            score.Stage `json:"stage"`
	Emission         uint64      `json:"emission"` // tokens in a period
	ValidatorPercent uint8       `json:"validator_percent"`
	Given            uint64      `json:"given"`               // tokens given for scores so far
	Taken            uint64      `json:"taken"`               // tokens taken back by penalties so far
	Bittensor        bool        `json:"bittensor,omitempty"` // windows count its blocks
}

// Commits is the number of commitments to a round that are on the chain.
type Commits struct {
	Round coordinator.Round
	Count uint32
}

// Set is a set of members by index: bit i%8 of byte i/8.
type Set []byte

// Has reports whether member i is in the set.
func (s Set) Has(i coordinator.Member) bool {
	return uint64(i>>3) < uint64(len(s)) && s[i>>3]>>(i&7)&1 == 1
}

// Count returns the number of members in the set.
func (s Set) Count() (n uint32) {
	for _, b := range s {
		n += uint32(bits.OnesCount8(b))
	}
	return n
}

// add puts member i into a set that has room for it.
func (s Set) add(i coordinator.Member) { s[i>>3] |= 1 << (i & 7) }
