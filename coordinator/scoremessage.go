package coordinator

import (
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Messages about commitments on the ledger, validators, scores and speeds.

// The kinds of these messages.
const (
	kindCommit            = 20
	kindRegisterValidator = 21
	kindRetireValidator   = 22
	kindCommitScores      = 23
	kindRevealScores      = 24
	kindSetSpeed          = 25
)

// Commit puts the sender's commitment to its result of the current round on the ledger, before the window ends. Only in runs
// that exchange by buckets; the ledger keeps the commitment's ID.
type Commit struct {
	Signed Signed
}

// RegisterValidator takes a seat of a validator, with the tokens attached to it as stake, at least Config.Stake and 1. When all
// seats are taken the lowest stake makes room for a higher one, and is paid out at once. From who is a validator already it
// adds to the stake.
type RegisterValidator struct {
	Payee key.Public // who is paid what the sender earns, and gets its stake back; zero = the sender itself
}

// RetireValidator gives the sender's seat up. Its stake and balance are paid out at once; for the period that is being scored
// it gets nothing.
type RetireValidator struct{}

// CommitScores binds the sender to its scores of a period, in the first half of the next one's windows.
type CommitScores struct {
	Period uint32
	Hash   wire.Hash // ScoresHash of what RevealScores will show
}

// RevealScores shows the scores that the sender has committed to, in the second half of those windows.
type RevealScores struct {
	Period uint32
	Salt   wire.Hash
	Scores []Score
}

// SetSpeed says how fast the sender trains, once in an epoch and not what it has said last. Only in runs whose shares go by speed, and
// from the next epoch on.
type SetSpeed struct {
	Speed uint32 // tokens a second
}

// Score is what a validator says a member's work of a period was worth.
type Score struct {
	Member uint32 // its place in the table of members
	Value  int16  // from -ScoreOne to ScoreOne, for -1 to 1
}

// ScoreOne is the fixed-point score 1.
const ScoreOne = 32767

const scoreBytes = 4 + 2

func (Commit) kind() uint8            { return kindCommit }
func (RegisterValidator) kind() uint8 { return kindRegisterValidator }
func (RetireValidator) kind() uint8   { return kindRetireValidator }
func (CommitScores) kind() uint8      { return kindCommitScores }
func (RevealScores) kind() uint8      { return kindRevealScores }
func (SetSpeed) kind() uint8          { return kindSetSpeed }

func (m Commit) append(dst []byte) []byte            { return m.Signed.Append(dst) }
func (m RegisterValidator) append(dst []byte) []byte { return append(dst, m.Payee[:]...) }
func (RetireValidator) append(dst []byte) []byte     { return dst }
func (m SetSpeed) append(dst []byte) []byte          { return wire.AppendU32(dst, m.Speed) }

func (m CommitScores) append(dst []byte) []byte {
	return wire.AppendHash(wire.AppendU32(dst, m.Period), m.Hash)
}

func (m RevealScores) append(dst []byte) []byte {
	return appendScores(wire.AppendHash(wire.AppendU32(dst, m.Period), m.Salt), m.Scores)
}

func appendScores(dst []byte, scores []Score) []byte {
	dst = wire.AppendU32(dst, uint32(len(scores)))
	for _, v := range scores {
		dst = wire.AppendU16(wire.AppendU32(dst, v.Member), uint16(v.Value))
	}
	return dst
}

// ScoresHash returns what a validator commits to. It is bound to the run, the validator, the period and a salt that nobody else
// knows, so that nobody can copy a commitment, nor find out the scores by trying.
func ScoresHash(run wire.Hash, validator key.Public, m RevealScores) wire.Hash {
	return wire.Sum("entrain/scores", run[:], validator[:], m.append(nil))
}

// scoresOK tells whether scores are in order and in range.
func scoresOK(scores []Score) bool {
	for k, v := range scores {
		if v.Value < -ScoreOne || k > 0 && v.Member <= scores[k-1].Member {
			return false
		}
	}
	return true
}

// readScoreMessage takes a message of one of the kinds above off a reader; nil if the kind is none of them.
func readScoreMessage(kind uint8, r *wire.Reader) Message {
	switch kind {
	case kindCommit:
		return Commit{Signed: ReadSigned(r)}
	case kindRegisterValidator:
		return RegisterValidator{Payee: key.Public(r.Hash())}
	case kindRetireValidator:
		return RetireValidator{}
	case kindCommitScores:
		return CommitScores{Period: r.U32(), Hash: r.Hash()}
	case kindRevealScores:
		return RevealScores{Period: r.U32(), Salt: r.Hash(), Scores: readScores(r)}
	case kindSetSpeed:
		return SetSpeed{Speed: r.U32()}
	}
	return nil
}

func readScores(r *wire.Reader) []Score {
	n := r.U32()
	if n > MembersMax {
		r.Fail(wire.ErrTooLong)
	} else if uint64(n)*scoreBytes > uint64(r.Len()) {
		r.Fail(wire.ErrShort)
	}
	if r.Err() != wire.OK || n == 0 {
		return nil
	}
	scores := make([]Score, n)
	for k := range scores {
		scores[k] = Score{Member: r.U32(), Value: int16(r.U16())}
	}
	if !scoresOK(scores) {
		r.Fail(wire.ErrNotCanonical)
	}
	return scores
}
