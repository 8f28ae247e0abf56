package coordinator

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/wire"
)

// Windows: rounds of a run that exchanges by buckets. They are closed by the ledger's height, and what a member will show of its
// result is chosen by a seed that nobody knew when it committed to all of it.

func (s State) exchange() Exchange { return Exchange(s.h().Exchange()) }

// DeadlineHeight returns at which height of the ledger the phase ends; 0 if height does not end it.
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

// windowOver tells whether the phase has lasted as many blocks as a window has.
func (s State) windowOver(env Env) bool {
	since := s.h().PhaseHeight()
	return env.Height >= since && env.Height-since >= uint64(s.h().WindowBlocks())
}

// windowed tells whether the round lasts a whole window: not so an epoch's last, in which nothing is trained or shown.
func (r Round) windowed() bool { return r.Trains() || r.Attests() != 0 }

// SliceSeed returns what chooses the slice of the round: a hash of the seed of the next round, so that nobody knew it while
// commitments were taken. It is false until the next round of the same epoch has opened.
func (r Round) SliceSeed() (wire.Hash, bool) {
	next, ok := r.s.At(r.Number() + 1)
	if !ok || next.Epoch() != r.Epoch() {
		return wire.Hash{}, false
	}
	seed := next.Seed()
	return wire.Sum("entrain/slice", seed[:]), true
}

// Committed returns the ID of the commitment that member i has put on the ledger for the round; false if it has not, or if
// the run does not exchange by buckets.
func (r Round) Committed(i uint32) (wire.Hash, bool) {
	if !r.s.l.Buckets || i >= r.s.l.Members {
		return wire.Hash{}, false
	}
	id := r.s.l.Commit(r.b, i).ID()
	return id, !id.IsZero()
}

// CommittedCount returns how many members have put a commitment for the round on the ledger.
func (r Round) CommittedCount() uint32 {
	n := uint32(0)
	for i := range r.s.Count() {
		if _, ok := r.Committed(i); ok {
			n++
		}
	}
	return n
}

// holdable tells whether a witness can hold a result of member i of the round.
func (r Round) holdable(i uint32) bool {
	if !r.Expected(i) {
		return false
	}
	if r.s.exchange() != Buckets {
		return true
	}
	_, ok := r.Committed(i)
	return ok
}

// held returns the bitmap of the members whose result a witness can hold.
func (r Round) held() []byte {
	if r.s.exchange() != Buckets {
		return r.expected()
	}
	list := make([]byte, r.s.l.Bitmap)
	for i := range r.s.Count() {
		if r.holdable(i) {
			setBit(list, i)
		}
	}
	return list
}

// selectCommitted is Select where the commitments are on the ledger.
func (r Round) selectCommitted(member uint32, candidates []wire.Hash) (int, bool) {
	want, ok := r.Committed(member)
	if !ok {
		return 0, false
	}
	for c, id := range candidates {
		if id == want {
			return c, true
		}
	}
	return 0, false
}

// commit puts a commitment of its sender's on the ledger: for the current round, in RoundTrain, one for each.
func (s State) commit(env Env, m Commit) Error {
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
