package coordinator

import (
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// This file implements windows, the rounds of a run that exchanges by buckets. The ledger's height
// ends them. A seed that was unknown while members committed to their results draws the slice that
// they must reveal.

func (s State) exchange() Exchange { return Exchange(s.h().Exchange()) }

// DeadlineHeight returns the ledger height at which the phase ends, or 0 if height does not end it.
func (s State) DeadlineHeight() uint64 {
	if s.exchange() != Buckets {
		return 0
	}
	since, blocks := s.h().PhaseHeight(), uint64(s.h().WindowBlocks())
	switch {
	case s.Phase() == Finished && s.book().Due():
		blocks *= uint64(s.book().Tail()) + 1
	case s.Phase() != RoundTrain:
		return 0
	}
	if since > 1<<64-1-blocks {
		return 0
	}
	return since + blocks
}

// windowOver reports whether the phase has lasted WindowBlocks blocks.
func (s State) windowOver(env Env) bool {
	return reached(env.Height, s.h().PhaseHeight(), uint64(s.h().WindowBlocks()))
}

// windowed reports whether the round lasts a whole window. An epoch's last round does not, since
// nothing is trained or revealed in it.
func (r RoundState) windowed() bool { return r.Trains() || r.Attests() != 0 }

// SliceSeed returns the value that draws the slice of the round: a hash of the next round's seed,
// which was unknown while commitments were taken. It is false until the next round of the same
// epoch opens.
func (r RoundState) SliceSeed() (wire.Hash, bool) {
	next, ok := r.s.At(r.Number() + 1)
	if !ok || next.Epoch() != r.Epoch() {
		return wire.Hash{}, false
	}
	seed := next.Seed()
	return wire.Sum("entrain/slice", seed[:]), true
}

// Committed returns the ID of member i's commitment on the ledger for the round. It is false if
// there is none, or if the run does not exchange by buckets.
func (r RoundState) Committed(i Member) (wire.Hash, bool) {
	if !r.s.l.Buckets || i >= Member(r.s.l.Members) {
		return wire.Hash{}, false
	}
	id := r.s.l.Commit(r.b, i).ID()
	return id, !id.IsZero()
}

// CommittedCount returns the number of members with a commitment for the round on the ledger.
func (r RoundState) CommittedCount() uint32 {
	n := uint32(0)
	for i := range r.s.Count() {
		if _, ok := r.Committed(i); ok {
			n++
		}
	}
	return n
}

// held returns the bitmap of the members whose results a witness can hold.
func (r RoundState) held() []byte {
	if r.s.exchange() != Buckets {
		return r.expected()
	}
	list, expected := make([]byte, r.s.l.Bitmap), r.expected()
	for i := range r.s.Count() {
		if bit(expected, i) && !record.Zero(r.s.l.Commit(r.b, i)) {
			setBit(list, i)
		}
	}
	return list
}

// selectCommitted is Select for a run whose commitments are on the ledger.
func (r RoundState) selectCommitted(member Member, candidates []wire.Hash) (int, bool) {
	want, ok := r.Committed(member)
	if i := slices.Index(candidates, want); ok && i >= 0 {
		return i, true
	}
	return 0, false
}

// apply records the sender's commitment for the current round, in RoundTrain. Each member has one.
func (m Commit) apply(s State, env Env) Error {
	i, e := s.presentMember(env.Sender)
	if e != OK {
		return e
	}
	v := m.Signed.Commitment
	switch {
	case s.exchange() != Buckets:
		return ErrExchange
	case s.Phase() != RoundTrain:
		return ErrPhase
	case v.Round != s.Round():
		return ErrRound
	case s.status(i) != StatusActive:
		return ErrNotActive
	}
	r := s.slot(s.Round())
	id := v.ID()
	if have, ok := r.Committed(i); ok {
		if have == id {
			return ErrDuplicate
		}
		return ErrCommitted
	}
	if v.Run != s.ID() || v.Member != i || v.Epoch != r.Epoch() || !r.Expected(i) || v.Share != batch.Hash(r.Share(i)) ||
		!m.Signed.Verify(env.Sender) {
		return ErrCommitment
	}
	s.l.Commit(r.b, i).SetID(id)
	return OK
}

// CountsBlocks reports whether the run waits for the ledger's height rather than its time. A ledger
// that makes blocks only when something happens must then make them for this run. That is so in the
// windows of a run with Buckets, and after the end of a run while scores are due.
func (s State) CountsBlocks() bool {
	return s.exchange() == Buckets && (s.Phase() == RoundTrain || s.Phase() == Finished && s.book().Due())
}
