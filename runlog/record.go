package runlog

import (
	"math/bits"
	"time"

	"github.com/entrain-network/entrain/coordinator"
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

// Head describes the run as a whole. Its numbers are those of coordinator.State.
type Head struct {
	Run         string // name
	ID          string // hex
	Chain       string // "" if unknown
	Own         string // key of the participant that wrote the log, hex; "" if there is none
	Steps       uint32 // in all
	Capacity    uint32 // the most members
	SeqTokens   uint32 // tokens in a sequence
	Overlap     uint8
	MissedMax   uint8
	Phase       string
	SinceMs     uint64 // start of the phase
	DeadlineMs  uint64 // 0 if time alone does not end the phase
	Epoch       uint32
	Round       uint32
	Step        uint32
	Present     uint32
	Draining    uint8
	Pausing     bool
	Rollbacks   uint32
	Points      uint64
	Retired     uint64 // points of members whose places went to others
	Params      string // hash agreed last, hex
	ParamsRound uint32
	Saved       Saved
}

// Saved is the checkpoint reported last. Manifest is "" if there was none.
type Saved struct {
	Epoch    uint32
	Params   string
	Manifest string
	By       string
}

// Member is a place in the table of members.
type Member struct {
	Index uint32
	coordinator.MemberState
}

// Round is one of the rounds that the state keeps.
type Round struct {
	Number        uint32
	Epoch         uint32
	Step          uint32 // 0 in a drain round
	OpenedMs      uint64
	Batch         uint32 // sequences
	Seed          string
	Agreed        string // hash of the parameters at its start, "" without a quorum
	Final         bool
	Attests       uint32 // the round its witnesses report on; 0 if none
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
	Member   uint32
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
	Checks      []coordinator.Check      // opened or changed
	Closed      []Share                  // whose checks are no longer open
	Disputes    []coordinator.Dispute    // opened or changed
	Ended       []uint32                 // numbers of disputes that are over
	Convictions []coordinator.Conviction // new ones, oldest first
}

// TrustHead holds the totals of a Trust. Its numbers are those of coordinator.State.
type TrustHead struct {
	Percent   uint8  // of a round's results that are checked, on average
	Stake     uint64 // least stake of a member, in tokens
	Rate      uint64 // tokens paid for a point
	Treasury  uint64
	Escrow    uint64
	Verified  uint64 // points given for verifying
	Drawn     uint32 // checks so far
	Passed    uint32 // checks that passed
	Disputed  uint32 // disputes so far
	Convicted uint32 // convictions so far
}

// Share names the result of a member in a round.
type Share struct{ Round, Member uint32 }

// Windows is the part of a state about windows, scores and validators: of runs that exchange by
// buckets, or have validators. Read from a log, it holds what changed.
type Windows struct {
	Whole bool // nothing before it counts
	WindowsHead
	Commits    []Commits               // of the rounds that the state keeps
	Validators []coordinator.Validator // all, by seat, if SeatsTold; else they are unchanged
	SeatsTold  bool
	Period     *coordinator.Scores // the period settled last, when that is new
}

// WindowsHead holds the totals of a Windows. Its numbers are those of coordinator.State.
type WindowsHead struct {
	Buckets          bool   // results travel through buckets, and commitments are on the chain
	WindowBlocks     uint32 // in a window
	DeadlineHeight   uint64 // at which the window ends; 0 if height does not end the phase
	Window           uint32
	ScoreWindows     uint32 // in a period; 0 in a run without validators
	Current          uint32 // the running period
	Scoring          uint32 // the period being scored; 0 if none
	Stage            coordinator.ScoreStage
	Emission         uint64 // tokens in a period
	ValidatorPercent uint8
	Given            uint64 // tokens given for scores so far
	Taken            uint64 // tokens taken back by penalties so far
}

// Commits is the number of commitments to a round that are on the chain.
type Commits struct{ Round, Count uint32 }

// Set is a set of members by index: bit i%8 of byte i/8.
type Set []byte

// Has reports whether member i is in the set.
func (s Set) Has(i uint32) bool {
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
func (s Set) add(i uint32) { s[i>>3] |= 1 << (i & 7) }
