package coordinator

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Views of checks, disputes and convictions.

// Check is one accepted result that was drawn to be recomputed, and who is to do it.
type Check struct {
	Round      uint32 // of the result
	Epoch      uint32
	Step       uint32
	Member     uint32 // whose result it is
	Verifier   uint32
	Sequences  uint32    // number of sequences in the share
	Share      wire.Hash // batch.Hash of the share
	Params     wire.Hash // the agreed parameters at the round's start
	DeadlineMs uint64    // a verdict counts before this time
	Disputed   bool      // a dispute about it is open, whose deadlines count instead
	Reassigned bool      // a tie-breaker makes it, who was served what the first verifier was not
}

// Stage is how far a dispute is.
type Stage uint8

// The stages of a dispute.
const (
	StageTieBreaking Stage = 1 // tie-breakers recompute and vote
	StageDefending   Stage = 2 // the accused is to show its trace
	StageDescending  Stage = 3 // both are to reveal the children of their nodes
	StageEvidence    Stage = 4 // the accuser is to open the slice
)

// String returns the stage in words.
func (s Stage) String() string {
	switch s {
	case StageTieBreaking:
		return "tie-breaking"
	case StageDefending:
		return "defending"
	case StageDescending:
		return "descending"
	case StageEvidence:
		return "evidence"
	}
	return "none"
}

// Level is which of the three nested trees a dispute descends.
type Level uint8

// The levels: a trace's tree has operations for leaves, an operation's tiles, a tile's slices.
const (
	LevelOps    Level = 1
	LevelTiles  Level = 2
	LevelSlices Level = 3
)

// String returns what the leaves of the level's tree are.
func (l Level) String() string {
	switch l {
	case LevelOps:
		return "operations"
	case LevelTiles:
		return "tiles"
	case LevelSlices:
		return "slices"
	}
	return "none"
}

// NoMember stands for a member's number where there is none.
const NoMember = 1<<32 - 1

// The sides of a dispute, indices of what there is two of.
const (
	Accused = 0
	Accuser = 1
)

// Vote is what a tie-breaker found.
type Vote uint8

// The votes.
const (
	VoteRight    Vote = 1 // the share was recomputed with the accused's result
	VoteWrong    Vote = 2 // it was recomputed with another result
	VoteUnserved Vote = 3 // the accused does not serve what is needed
)

// TieVote is a tie-breaker of a dispute and what it said.
type TieVote struct {
	Member uint32
	Vote   Vote // 0 = nothing yet
	Trace  wire.Hash
}

// Dispute is a copy of an open dispute.
type Dispute struct {
	ID uint32 // counts from 1 across the run
	Check
	Accused     uint32     // Check.Member
	Accuser     uint32     // the verifier, or the tie-breaker that stands in for it; NoMember if there is none at the moment
	Unserved    bool       // the verdict was Unserved: tie-breakers decide, and there is neither commitment nor descent
	Commitment  Commitment // what it is about
	Stage       Stage
	DeadlineMs  uint64 // of the stage, or of the moves that are due
	TieBreakers []TieVote
	Defended    bool         // the accused has shown its trace
	Traces      [2]wire.Hash // of the accused and the accuser; that of the accused is zero until it is shown
	Level       Level        // 0 until they descend
	Op          uint32       // where they differ, as far as is known
	Tile        uint32
	Slice       uint32
	Depth       uint8                 // levels of sixteen children still to go in this tree
	Index       uint32                // of the node among those of its depth, as in bisect.Children
	Nodes       [2]wire.Hash          // the node at which they differ, of the accused and the accuser
	Revealed    [2]bool               // who has revealed the node's children
	Children    [bisect.Fan]wire.Hash // what was revealed, if one has; else zero
}

// Case returns what the referee is told of the dispute.
func (d Dispute) Case() Case {
	return Case{Commitment: d.Commitment, Step: d.Step, Sequences: d.Sequences}
}

// Offence is why a member was convicted.
type Offence uint8

// The offences. For the lesser ones a member is dropped and pays a fee; for the others it is ejected and loses its stake.
const (
	WrongResult     Offence = 1 // its result is not what comes out of its share
	Equivocated     Offence = 2 // it signed two commitments for one round
	FalseAccusation Offence = 3 // it accused a member whose result is right
	FalsePass       Offence = 4 // it passed a result without having computed it
	Silence         Offence = 5 // it did not make its move in a dispute
	NotServing      Offence = 6 // it did not serve what its results are checked with, three times in a row
	Absence         Offence = 7 // lesser: it missed too often and was dropped
	Contradiction   Offence = 8 // lesser: it named other parameters than the agreed ones in three reports in a row
)

// Lesser tells whether the offence costs a fee only.
func (o Offence) Lesser() bool { return o == Absence || o == Contradiction }

// String returns the offence in words.
func (o Offence) String() string {
	switch o {
	case WrongResult:
		return "wrong result"
	case Equivocated:
		return "equivocation"
	case FalseAccusation:
		return "false accusation"
	case FalsePass:
		return "false pass"
	case Silence:
		return "silence"
	case NotServing:
		return "not serving"
	case Absence:
		return "absence"
	case Contradiction:
		return "contradiction"
	}
	return "none"
}

// Conviction is the record of a member that was found out.
type Conviction struct {
	Number   uint32     // counts from 1 across the run
	Round    uint32     // the round it is about: of the result, or the current one
	Member   uint32     // its place in the table of members then
	Key      key.Public // who it was
	Offence  Offence
	By       uint32     // who showed it and was rewarded; NoMember if nobody
	ByKey    key.Public // zero if nobody
	Slashed  uint64     // tokens it lost
	Evidence wire.Hash  // MessageHash of the decisive message; zero if it was silence
	// Of its results, those accepted in rounds FirstRound to LastRound entered the model, Results in all.
	FirstRound, LastRound, Results uint32
	AtMs                           uint64
}

// Checks returns the checks that are open or in dispute.
func (s State) Checks() []Check {
	var list []Check
	for k := range s.l.ChecksMax {
		if b := s.check(k); b.Round() != 0 {
			list = append(list, readCheck(b))
		}
	}
	return list
}

// check returns the bytes of place k of the table of checks.
func (s State) check(k uint32) record.Check { return s.buffer().Check(k) }

func readCheck(b record.Check) Check {
	return Check{
		Round: b.Round(), Epoch: b.Epoch(), Step: b.Step(), Member: b.Member(),
		Verifier: b.Verifier(), Sequences: b.Sequences(), DeadlineMs: b.DeadlineMs(),
		Share: b.Share(), Params: b.Params(), Disputed: b.Disputed(), Reassigned: b.Reassigned(),
	}
}

func (c Check) put(b record.Check) {
	b.SetRound(c.Round)
	b.SetEpoch(c.Epoch)
	b.SetStep(c.Step)
	b.SetMember(c.Member)
	b.SetVerifier(c.Verifier)
	b.SetSequences(c.Sequences)
	b.SetDeadlineMs(c.DeadlineMs)
	b.SetShare(c.Share)
	b.SetParams(c.Params)
	b.SetDisputed(c.Disputed)
	b.SetReassigned(c.Reassigned)
}

// Disputes returns the open disputes, oldest first.
func (s State) Disputes() []Dispute {
	var list []Dispute
	for k := range uint32(record.DisputesMax) {
		d := s.dispute(k)
		if d.free() {
			continue
		}
		list = append(list, d.copy())
		for i := len(list) - 1; i > 0 && list[i].ID < list[i-1].ID; i-- {
			list[i], list[i-1] = list[i-1], list[i]
		}
	}
	return list
}

// Dispute returns the dispute of that number, if it is open.
func (s State) Dispute(id uint32) (Dispute, bool) {
	if d, ok := s.disputeOf(id); ok {
		return d.copy(), true
	}
	return Dispute{}, false
}

// DisputesTotal returns how many disputes there were; it is the number of the last one.
func (s State) DisputesTotal() uint32 { return s.h().Disputes() }

// ChecksDrawn returns how many checks were drawn, and how many of them passed.
func (s State) ChecksDrawn() (drawn, passed uint32) {
	return s.h().ChecksDrawn(), s.h().ChecksPassed()
}

// Convictions returns the last convictions, up to 64, the newest last.
func (s State) Convictions() []Conviction {
	total := s.ConvictionsTotal()
	list := make([]Conviction, 0, min(total, record.ConvictionsMax))
	for n := total - min(total, record.ConvictionsMax); n < total; n++ {
		b := s.conviction(n + 1)
		list = append(list, Conviction{
			Number: b.Number(), Round: b.Round(), Member: b.Member(), Key: b.Key(),
			Offence: Offence(b.Offence()), By: b.By(), ByKey: b.ByKey(),
			Slashed: b.Slashed(), Evidence: b.Evidence(), AtMs: b.AtMs(),
			FirstRound: b.FirstRound(), LastRound: b.LastRound(), Results: b.Results(),
		})
	}
	return list
}

// ConvictionsTotal returns how many convictions there were; it is the number of the last one.
func (s State) ConvictionsTotal() uint32 { return s.h().Convictions() }

// conviction returns the bytes of conviction n, which counts from 1.
func (s State) conviction(n uint32) record.Conviction { return s.buffer().Conviction(n) }
