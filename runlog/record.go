package runlog

import (
	"time"

	"github.com/entrain-network/entrain/event"
)

// Record is one thing that happened, or one look at the coordinator. One of Event, Standing and Heard is set.
type Record struct {
	Time time.Time
	Who  string // at which participant, in a short word; "" is whoever wrote the log

	// Event is what a participant reported. Its Snapshot is not part of the log; its digest follows as a Standing.
	Event event.Event
	// Standing is the coordinator's state in short. Read from a log it holds what changed since the one before, and all of it
	// in the first one of each file. In a run of many members, counters that grow with every round may be behind.
	Standing *Standing
	// Heard is the sum of what came from others, in the log of a run of many members.
	Heard *Heard
}

// Standing is what windows show of a coordinator's state.
type Standing struct {
	Height uint64
	TimeMs uint64 // the ledger's time
	Head
	Members []Member // by index; those that changed
	Rounds  []Round  // oldest first; those that changed
	Trust   *Trust   // nil if nothing of it changed, or the run has nothing of the kind
	Windows *Windows // likewise
}

// Head is what a state says of the run as a whole. The numbers are those of coordinator.State.
type Head struct {
	Run         string // name
	ID          string // hex
	Chain       string // "" if not known
	Own         string // key of the participant whose log this is, hex; "" if there is none
	Steps       uint32 // in all
	Capacity    uint32 // places for members
	SeqTokens   uint32 // tokens in a sequence
	Overlap     uint8
	MissedMax   uint8
	Phase       string
	SinceMs     uint64 // the phase's begin
	DeadlineMs  uint64 // 0: time alone does not end the phase
	Epoch       uint32
	Round       uint32
	Step        uint32
	Present     uint32
	Draining    uint8
	Pausing     bool
	Rollbacks   uint32
	Points      uint64
	Retired     uint64 // points of members whose places were given to others
	Params      string // hash agreed last, hex
	ParamsRound uint32
	Saved       Saved
}

// Saved is the checkpoint reported last; Manifest is "" if there was none.
type Saved struct {
	Epoch    uint32
	Params   string
	Manifest string
	By       string
}

// Member is one place of the table of members.
type Member struct {
	Index       uint32
	Key         string // hex
	Status      string
	Points      uint64
	Results     uint32
	Missed      uint8
	Idle        uint8
	Speed       uint32
	JoinedMs    uint64
	JoinedEpoch uint32
	LeftMs      uint64
	LeftRound   uint32
}

// Round is one round of the ring.
type Round struct {
	Number        uint32
	Epoch         uint32
	Step          uint32 // 0: a drain round
	OpenedMs      uint64
	Batch         uint32 // sequences
	Seed          string
	Agreed        string // hash of the parameters at its start, "" if no quorum said the same
	Final         bool
	Attests       uint32 // the round its witnesses report of; 0: none
	Quorum        uint32
	Witnesses     []Witness
	Active        Set
	Expected      Set // have a share
	Accepted      Set
	AcceptedCount uint32
	// Sequences are those of the shares of Expected, in their order; none where shares are equal.
	Sequences []uint32
}

// Witness is a seat of a round.
type Witness struct {
	Member   uint32
	Reported bool
	Complete bool
}

// Set is a set of members by index: bit i%8 of byte i/8.
type Set []byte

// Has tells whether member i is in the set.
func (s Set) Has(i uint32) bool {
	return uint64(i>>3) < uint64(len(s)) && s[i>>3]>>(i&7)&1 == 1
}

// add puts member i into a set that has room for it.
func (s Set) add(i uint32) { s[i>>3] |= 1 << (i & 7) }
