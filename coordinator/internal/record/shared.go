package record

import (
	"math/bits"

	"github.com/entrain-network/entrain/key"
)

// Values that several packages share. The coordinator gives them types and documents them.
const (
	PhaseRoundTrain   = 3
	PhaseRoundWitness = 4
	PhaseFinished     = 6

	StatusWaiting   = 1
	StatusReady     = 2
	StatusActive    = 3
	StatusDropped   = 4
	StatusWithdrawn = 5
	StatusEjected   = 6
	StatusReplaced  = 7

	ExchangeBuckets = 1
	SharingEqual    = 0

	NoMember  = 1<<32 - 1
	TokensMax = 1 << 62

	ScoreWindowsMax = 1 << 16

	CountMax     = 1 << 31 // rounds, steps, epochs: at one a second, 68 years
	SequencesMax = 1 << 60 // numbers of sequences: CountMax rounds of BatchMax stay far below
)

// Present reports whether the member counts towards the members that a run needs.
func (b Place) Present() bool {
	st := b.Status()
	return st == StatusWaiting || st == StatusReady || st == StatusActive
}

// Ejected reports whether the member was convicted and ejected.
func (b Place) Ejected() bool { return b.Status() == StatusEjected }

// Leave ends the membership of member i.
func (b Buffer) Leave(i Member, status uint8, nowMs uint64) {
	m, h := b.Place(i), b.Header()
	m.SetStatus(status)
	m.SetLeftMs(nowMs)
	m.SetLeftRound(h.Round())
	m.SetReleaseMs(nowMs + h.UnbondMs())
}

// PayVerifier gives member i the points of a share that it recomputed, unless it was ejected.
func (b Buffer) PayVerifier(i Member, sequences uint32) {
	m, h := b.Place(i), b.Header()
	if m.Ejected() {
		return
	}
	m.SetPoints(m.Points() + uint64(sequences))
	h.SetPointsTotal(h.PointsTotal() + uint64(sequences))
	h.SetPointsVerified(h.PointsVerified() + uint64(sequences))
}

// Unclaimed returns the points of all members that were not paid.
func (b Buffer) Unclaimed() uint64 {
	points := uint64(0)
	for i := range b.Header().Count() {
		points += b.Place(i).Points() - b.Place(i).Claimed()
	}
	return points
}

// Unpaid returns what the treasury owes for points, at most limit+1.
func (b Buffer) Unpaid(limit uint64) uint64 {
	rate := b.Header().Rate()
	if rate == 0 {
		return 0
	}
	over, tokens := bits.Mul64(b.Unclaimed(), rate)
	if over > 0 || tokens > limit {
		return limit + 1
	}
	return tokens
}

// SlotsMax returns how many members may be present at a time.
func (b Buffer) SlotsMax() uint32 {
	if n := b.Header().Slots(); n > 0 {
		return n
	}
	return b.Members
}

// InEpoch reports whether points are being earned that a conviction may still take.
func (b Header) InEpoch() bool {
	return b.Phase() == PhaseRoundTrain || b.Phase() == PhaseRoundWitness
}

// CanHold reports whether the escrow may receive this many more tokens.
func (b Header) CanHold(value uint64) bool { return value <= TokensMax-min(b.Escrow(), TokensMax) }

// SetPayment records what the current message pays out of the escrow, and to which key.
func (b Header) SetPayment(to key.Public, amount uint64) {
	b.SetPayoutTo(to)
	b.SetPayout(amount)
}

// PayOut takes tokens out of the escrow.
func (b Header) PayOut(to key.Public, amount uint64) {
	b.SetEscrow(b.Escrow() - amount)
	b.SetPayment(to, amount)
}
