package coordinator

import "github.com/entrain-network/entrain/key"

// Tokens. The host holds a run's tokens in its escrow, in one account; whose they are stands here: the treasury's, and each
// member's stake and balance. Only Join, Deposit and Fund bring tokens in, only Claim takes them out.

// Treasury returns the tokens from which points and scores are paid.
func (s State) Treasury() uint64 { return getU64(s.b, hTreasury) }

// Escrow returns the tokens that the host holds for the run: the treasury, and what members and validators have in it.
func (s State) Escrow() uint64 { return getU64(s.b, hEscrow) }

// Payout returns what the message applied last pays out of the escrow, and to whom; 0 unless it was a Claim, a
// RetireValidator, or a RegisterValidator that replaces somebody.
func (s State) Payout() (to key.Public, amount uint64) {
	return get32(s.b, hPayoutTo), getU64(s.b, hPayout)
}

// PointsVerified returns the points given for verifying, which are in PointsTotal.
func (s State) PointsVerified() uint64 { return getU64(s.b, hPointsVerified) }

// releaseMs returns when the stake of member i is free; 0 if it is not known yet, because the member has not left.
func (s State) releaseMs(i uint32) uint64 {
	b := s.place(i)
	if !Status(getU8(b, mStatus)).Present() {
		return getU64(b, mReleaseMs)
	}
	if s.Phase() == Finished {
		return s.PhaseSince() + getU64(s.b, hUnbondMs)
	}
	return 0
}

// holds tells whether so many more tokens may come in.
func (s State) holds(value uint64) bool { return value <= TokensMax-min(s.Escrow(), TokensMax) }

func (s State) deposit(env Env, m Deposit) Error {
	i, ok := s.Find(m.Member)
	switch {
	case env.Value == 0 || !s.holds(env.Value):
		return ErrValue
	case !ok:
		return ErrNoMember
	case s.status(i) == StatusEjected:
		return ErrEjected
	}
	s.addStake(i, env.Value)
	return OK
}

func (s State) addStake(i uint32, value uint64) {
	b := s.place(i)
	putU64(b, mStake, getU64(b, mStake)+value)
	putU64(s.b, hEscrow, s.Escrow()+value)
}

func (s State) fund(env Env) Error {
	if env.Value == 0 || !s.holds(env.Value) {
		return ErrValue
	}
	putU64(s.b, hTreasury, s.Treasury()+env.Value)
	putU64(s.b, hEscrow, s.Escrow()+env.Value)
	return OK
}

// claim pays the sender's payee what the sender is owed.
func (s State) claim(env Env) Error {
	i, ok := s.Find(env.Sender)
	if !ok {
		return s.claimSeat(env)
	}
	b := s.place(i)
	settled := getU64(b, mSettled)
	if !s.inEpoch() && !s.pending(i) {
		settled = getU64(b, mPoints)
	}
	points := uint64(0)
	rate := getU64(s.b, hRate)
	if rate > 0 {
		points = min(settled-getU64(b, mClaimed), s.Treasury()/rate)
	}
	paid := points * rate
	amount := paid + getU64(b, mBalance)
	stake := uint64(0)
	if s.stakeFree(env, i) {
		stake = getU64(b, mStake)
	}
	amount += stake
	if amount == 0 {
		if s.claimSeat(env) == OK {
			return OK
		}
		return ErrNothing
	}
	putU64(b, mSettled, settled)
	putU64(b, mClaimed, getU64(b, mClaimed)+points)
	putU64(b, mBalance, 0)
	putU64(b, mStake, getU64(b, mStake)-stake)
	putU64(s.b, hTreasury, s.Treasury()-paid)
	putU64(s.b, hEscrow, s.Escrow()-amount)
	putU64(s.b, hPayout, amount)
	put32(s.b, hPayoutTo, get32(b, mPayee))
	return OK
}

// clearPayout forgets what the message before paid out.
func (s State) clearPayout() { clear(s.b[hPayout : hPayoutTo+32]) }

// inEpoch tells whether points are being earned that a conviction may still take.
func (s State) inEpoch() bool { return s.Phase() == RoundTrain || s.Phase() == RoundWitness }

// stakeFree tells whether member i may have its stake back: it has left long enough ago, or the run is over so long, and
// nothing that it did is in question or may still come to be.
func (s State) stakeFree(env Env, i uint32) bool {
	if s.status(i).Present() && s.Phase() != Finished || env.NowMs < s.releaseMs(i) || s.pending(i) {
		return false
	}
	for k := range uint32(ringRounds) {
		if r := s.slot(k); r.Number() != 0 && !r.Final() && r.Expected(i) {
			return false
		}
	}
	return true
}

// owed tells whether member i has tokens to get, now or later.
func (s State) owed(i uint32) bool {
	b := s.place(i)
	return getU64(b, mStake) > 0 || getU64(b, mBalance) > 0 || getU64(b, mUnripe) > 0 || s.scorePending(i) ||
		getU64(s.b, hRate) > 0 && getU64(b, mPoints) > getU64(b, mClaimed)
}

// pending tells whether member i is part of an open check or dispute.
func (s State) pending(i uint32) bool { return s.allPending()[i] }

// allPending tells of each member whether it is part of an open check or dispute.
func (s State) allPending() []bool {
	list := make([]bool, s.Count())
	for k := range s.l.checksMax {
		if b := s.check(k); getU32(b, kRound) != 0 {
			list[getU32(b, kMember)], list[getU32(b, kVerifier)] = true, true
		}
	}
	for k := range uint32(disputesMax) {
		d := s.dispute(k)
		if d.free() {
			continue
		}
		list[d.accused()] = true
		if d.accuser() != NoMember {
			list[d.accuser()] = true
		}
		for i := range d.ties() {
			list[d.tie(i).Member] = true
		}
	}
	return list
}

// settle makes points safe from convictions, at the end of an epoch: all that a member has, or, if results or verdicts of its
// are in question, those it had at the end of the epoch before.
func (s State) settle() {
	for i, pending := range s.allPending() {
		b := s.place(uint32(i))
		points := getU64(b, mPoints)
		if pending {
			putU64(b, mSettled, max(getU64(b, mSettled), getU64(b, mRipe)))
		} else {
			putU64(b, mSettled, points)
		}
		putU64(b, mRipe, points)
	}
}

// payVerifier gives member i the points of a share it recomputed, if it is still a member in good standing.
func (s State) payVerifier(i, sequences uint32) {
	b := s.place(i)
	if Status(getU8(b, mStatus)) == StatusEjected {
		return
	}
	putU64(b, mPoints, getU64(b, mPoints)+uint64(sequences))
	putU64(s.b, hPoints, s.PointsTotal()+uint64(sequences))
	putU64(s.b, hPointsVerified, s.PointsVerified()+uint64(sequences))
}
