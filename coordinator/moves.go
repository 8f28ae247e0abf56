package coordinator

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Messages about verification, disputes and tokens.

// The kinds of these messages.
const (
	kindPass         = 8
	kindAccuse       = 9
	kindUnserved     = 10
	kindTieBreak     = 11
	kindDefend       = 12
	kindReveal       = 13
	kindEvidence     = 14
	kindConcede      = 15
	kindEquivocation = 16
	kindDeposit      = 17
	kindClaim        = 18
	kindFund         = 19
)

// proofMax bounds the siblings in a Defend message.
const proofMax = 4 * bisect.DepthMax

// Pass is the verdict that a checked result is what comes out of the share. The gradient's root, which opens the
// commitment's Work, shows that the verifier computed it: one that does not open it convicts the verifier.
type Pass struct {
	Round      uint32 // of the result
	Member     uint32 // whose result it is
	Commitment Signed
	Gradient   wire.Hash
}

// Accuse is the verdict that something else comes out of the share. It opens a dispute about the commitment.
type Accuse struct {
	Round      uint32
	Member     uint32
	Commitment Signed
	Trace      wire.Hash // root of the verifier's own trace of the step
}

// Unserved is the verdict that the member does not serve what its result is checked with. Tie-breakers then try too.
type Unserved struct {
	Round  uint32
	Member uint32
}

// Vote is what a tie-breaker found.
type Vote uint8

// The votes.
const (
	VoteRight    Vote = 1 // the accused's result is what comes out
	VoteWrong    Vote = 2 // something else comes out
	VoteUnserved Vote = 3 // the accused does not serve what is needed
)

// TieBreak is what a tie-breaker says. Who votes VoteWrong may have to stand in for the accuser, with its own trace.
type TieBreak struct {
	Dispute uint32
	Vote    Vote
	Trace   wire.Hash // root of its own trace; zero if it could not compute any
}

// Defend answers an accusation with the accused's trace, whose last value is what was committed to.
type Defend struct {
	Dispute uint32
	Trace   wire.Hash
	Proof   []wire.Hash // bisect.Prove of the last operation: its leaf is Outcome of the commitment
}

// Reveal shows the children of the sender's node, at which accused and accuser differ.
type Reveal struct {
	Dispute uint32
	Nodes   [bisect.Fan]wire.Hash // bisect.Node of them is the sender's node
}

// Evidence is the accuser's opening of the slice at which the two differ, for the referee.
type Evidence struct {
	Dispute uint32
	Bytes   []byte // at most EvidenceBytesMax; the referee's format
}

// Concede gives a dispute up: its sender loses it.
type Concede struct {
	Dispute uint32
}

// Equivocation proves that a member signed two commitments for one round. Anybody may send it.
type Equivocation struct {
	A, B Signed
}

// Deposit adds the tokens attached to it to a member's stake. Anybody may send it.
type Deposit struct {
	Member key.Public
}

// Claim pays out to the sender's payee what the sender is owed: its settled points at Config.Rate as far as the treasury
// goes, its balance, and its stake if that is free.
type Claim struct{}

// Fund adds the tokens attached to it to the run's treasury. Anybody may send it.
type Fund struct{}

func (Pass) kind() uint8         { return kindPass }
func (Accuse) kind() uint8       { return kindAccuse }
func (Unserved) kind() uint8     { return kindUnserved }
func (TieBreak) kind() uint8     { return kindTieBreak }
func (Defend) kind() uint8       { return kindDefend }
func (Reveal) kind() uint8       { return kindReveal }
func (Evidence) kind() uint8     { return kindEvidence }
func (Concede) kind() uint8      { return kindConcede }
func (Equivocation) kind() uint8 { return kindEquivocation }
func (Deposit) kind() uint8      { return kindDeposit }
func (Claim) kind() uint8        { return kindClaim }
func (Fund) kind() uint8         { return kindFund }

func (m Pass) append(dst []byte) []byte {
	dst = wire.AppendU32(wire.AppendU32(dst, m.Round), m.Member)
	return wire.AppendHash(m.Commitment.Append(dst), m.Gradient)
}

func (m Accuse) append(dst []byte) []byte {
	dst = wire.AppendU32(wire.AppendU32(dst, m.Round), m.Member)
	return wire.AppendHash(m.Commitment.Append(dst), m.Trace)
}

func (m Unserved) append(dst []byte) []byte {
	return wire.AppendU32(wire.AppendU32(dst, m.Round), m.Member)
}

func (m TieBreak) append(dst []byte) []byte {
	return wire.AppendHash(wire.AppendU8(wire.AppendU32(dst, m.Dispute), uint8(m.Vote)), m.Trace)
}

func (m Defend) append(dst []byte) []byte {
	dst = wire.AppendHash(wire.AppendU32(dst, m.Dispute), m.Trace)
	dst = wire.AppendU32(dst, uint32(len(m.Proof)))
	for _, h := range m.Proof {
		dst = wire.AppendHash(dst, h)
	}
	return dst
}

func (m Reveal) append(dst []byte) []byte {
	dst = wire.AppendU32(dst, m.Dispute)
	for _, h := range m.Nodes {
		dst = wire.AppendHash(dst, h)
	}
	return dst
}

func (m Evidence) append(dst []byte) []byte {
	return wire.AppendVar(wire.AppendU32(dst, m.Dispute), m.Bytes)
}

func (m Concede) append(dst []byte) []byte      { return wire.AppendU32(dst, m.Dispute) }
func (m Equivocation) append(dst []byte) []byte { return m.B.Append(m.A.Append(dst)) }
func (m Deposit) append(dst []byte) []byte      { return append(dst, m.Member[:]...) }
func (Claim) append(dst []byte) []byte          { return dst }
func (Fund) append(dst []byte) []byte           { return dst }

// readMove takes a message of one of the kinds above off a reader; nil if the kind is none of them.
func readMove(kind uint8, r *wire.Reader) Message {
	switch kind {
	case kindPass:
		return Pass{Round: r.U32(), Member: r.U32(), Commitment: ReadSigned(r), Gradient: r.Hash()}
	case kindAccuse:
		return Accuse{Round: r.U32(), Member: r.U32(), Commitment: ReadSigned(r), Trace: r.Hash()}
	case kindUnserved:
		return Unserved{Round: r.U32(), Member: r.U32()}
	case kindTieBreak:
		return TieBreak{Dispute: r.U32(), Vote: Vote(r.U8()), Trace: r.Hash()}
	case kindDefend:
		return Defend{Dispute: r.U32(), Trace: r.Hash(), Proof: readProof(r)}
	case kindReveal:
		m := Reveal{Dispute: r.U32()}
		for i := range m.Nodes {
			m.Nodes[i] = r.Hash()
		}
		return m
	case kindEvidence:
		return Evidence{Dispute: r.U32(), Bytes: r.Var(EvidenceBytesMax)}
	case kindConcede:
		return Concede{Dispute: r.U32()}
	case kindEquivocation:
		return Equivocation{A: ReadSigned(r), B: ReadSigned(r)}
	case kindDeposit:
		return Deposit{Member: key.Public(r.Hash())}
	case kindClaim:
		return Claim{}
	case kindFund:
		return Fund{}
	}
	return readScoreMessage(kind, r)
}

func readProof(r *wire.Reader) []wire.Hash {
	n := r.U32()
	if n > proofMax {
		r.Fail(wire.ErrTooLong)
	} else if uint64(n)*32 > uint64(r.Len()) {
		r.Fail(wire.ErrShort)
	}
	if r.Err() != wire.OK || n == 0 {
		return nil
	}
	proof := make([]wire.Hash, n)
	for i := range proof {
		proof[i] = r.Hash()
	}
	return proof
}
