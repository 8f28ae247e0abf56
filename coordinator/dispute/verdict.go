package dispute

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Views of checks, disputes and convictions.

// Check is an accepted result that was drawn to be recomputed.
type Check struct {
	Round      record.Round // round of the result
	Epoch      record.Epoch
	Step       record.Step
	Member     record.Member // author of the result
	Verifier   record.Member
	Sequences  uint32    // number of sequences in the share
	Share      wire.Hash // batch.Hash of the share
	Params     wire.Hash // the agreed parameters at the round's start
	DeadlineMs uint64    // a verdict counts before this time
	Disputed   bool      // a dispute about it is open, whose deadlines count instead
	Reassigned bool      // a tie-breaker that was served makes it
}

// Stage is the stage of a dispute.
type Stage uint8

// The stages of a dispute.
const (
	StageTieBreaking Stage = 1 // tie-breakers recompute and vote
	StageDefending   Stage = 2 // the accused must show its trace
	StageDescending  Stage = 3 // both must reveal the children of their nodes
	StageEvidence    Stage = 4 // the accuser must open the slice
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

// Level is one of the three nested trees that a dispute descends.
type Level uint8

// The levels, by the leaves of their trees.
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

// The sides of a dispute, as indices of arrays of two.
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

// TieVote is a tie-breaker of a dispute and its vote.
type TieVote struct {
	Member record.Member
	Vote   Vote      // 0 = nothing yet
	Trace  wire.Hash // the root of its trace, as Blind gives it
}

// Dispute is a copy of an open dispute.
type Dispute struct {
	ID uint32 // counts from 1 across the run
	Check
	Accused     record.Member // Check.Member
	Accuser     record.Member // the verifier, a tie-breaker in its place, or NoMember
	Unserved    bool          // the verdict was Unserved: tie-breakers decide
	Commitment  Commitment    // the commitment in dispute
	Stage       Stage
	DeadlineMs  uint64 // for the stage, or for the moves that are due
	TieBreakers []TieVote
	Defended    bool // the accused has shown its trace
	// Traces are the roots, by sides. The accused's is zero until it is shown; the accuser's is what
	// Blind gives until its first Reveal.
	Traces   [2]wire.Hash
	Level    Level  // 0 until they descend
	Op       uint32 // where the traces differ, as far as is known
	Tile     uint32
	Slice    uint32
	Depth    uint8                 // levels of sixteen children left in this tree
	Index    uint32                // index of the node within its depth, as in bisect.Children
	Nodes    [2]wire.Hash          // the node at which they differ, by sides
	Revealed [2]bool               // the sides that have revealed the node's children
	Children [bisect.Fan]wire.Hash // the children that one side has revealed; else zero
}

// opened reports whether the accuser has shown its trace, by its first Reveal. A node below the
// root cannot have the root's hash.
func (d Dispute) opened() bool {
	return d.Level != 0 && (d.Revealed[Accuser] || d.Nodes[Accuser] != d.Traces[Accuser])
}

// Case returns the dispute as the referee sees it.
func (d Dispute) Case() Case {
	return Case{Commitment: d.Commitment, Step: d.Step, Sequences: d.Sequences}
}

// Offence is why a member was convicted.
type Offence uint8

// The offences. A lesser one costs the member a fee, and it is dropped; any other has it ejected,
// and it forfeits its stake.
const (
	WrongResult     Offence = 1 // its result is not that of its share
	Equivocated     Offence = 2 // it signed two commitments for one round
	FalseAccusation Offence = 3 // it accused a member whose result is right
	FalsePass       Offence = 4 // it passed a result without having computed it
	Silence         Offence = 5 // it did not make its move in a dispute
	NotServing      Offence = 6 // three times in a row it did not serve what a check needs
	Absence         Offence = 7 // lesser: it missed too often and was dropped
	Contradiction   Offence = 8 // lesser: three reports in a row with wrong parameters
)

// Lesser reports whether the offence costs only a fee.
func (o Offence) Lesser() bool { return o == Absence || o == Contradiction }

// unproven reports whether the offence is only what others say: a reward would pay them for saying
// it.
func (o Offence) unproven() bool { return o == NotServing || o.Lesser() }

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

// Conviction is the record of a convicted member.
type Conviction struct {
	Number   uint32        // counts from 1 across the run
	Round    record.Round  // round of the result in question, or else the current one
	Member   record.Member // its place in the table of members then
	Key      key.Public    // its key
	Offence  Offence
	By       record.Member // the member that was rewarded for the proof, or NoMember
	ByKey    key.Public    // the key of that member, or zero
	Slashed  uint64        // tokens it lost
	Evidence wire.Hash     // MessageHash of the decisive message; zero for silence
	// Its Results accepted results, of rounds FirstRound to LastRound, have entered the model.
	FirstRound, LastRound record.Round
	Results               uint32
	AtMs                  uint64
}

// OpenChecks returns the checks that are open or in dispute.
func (s Cases) OpenChecks() []Check {
	var list []Check
	for k := s.NextCheck(0); k < s.Layout.ChecksMax; k = s.NextCheck(k + 1) {
		list = append(list, readCheck(s.Check(k)))
	}
	return list
}

func readCheck(b record.Check) Check {
	return Check{
		Round: b.Round(), Epoch: b.Epoch(), Step: b.Step(), Member: b.Member(),
		Verifier: b.Verifier(), Sequences: b.Sequences(), DeadlineMs: b.DeadlineMs(),
		Share: b.Share(), Params: b.Params(), Disputed: b.Disputed(), Reassigned: b.Reassigned(),
	}
}

func (c Check) Put(b record.Check) {
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

// OpenDisputes returns the open disputes, oldest first.
func (s Cases) OpenDisputes() []Dispute {
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

// ByID returns the dispute of that number, if it is open.
func (s Cases) ByID(id uint32) (Dispute, bool) {
	if d, ok := s.disputeOf(id); ok {
		return d.copy(), true
	}
	return Dispute{}, false
}

// LastConvictions returns the last convictions, up to 64, the newest last.
func (s Cases) LastConvictions() []Conviction {
	total := s.h().Convictions()
	list := make([]Conviction, 0, min(total, record.ConvictionsMax))
	for n := total - min(total, record.ConvictionsMax); n < total; n++ {
		b := s.Conviction(n + 1)
		list = append(list, Conviction{
			Number: b.Number(), Round: b.Round(), Member: b.Member(), Key: b.Key(),
			Offence: Offence(b.Offence()), By: b.By(), ByKey: b.ByKey(),
			Slashed: b.Slashed(), Evidence: b.Evidence(), AtMs: b.AtMs(),
			FirstRound: b.FirstRound(), LastRound: b.LastRound(), Results: b.Results(),
		})
	}
	return list
}
