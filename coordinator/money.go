package coordinator

import "github.com/entrain-network/entrain/key"

// Tokens. The host holds a run's tokens in its escrow, in one account; whose they are stands here: the treasury's, and each
// member's stake and balance. Only Join, Deposit and Fund bring tokens in, only Claim takes them out.

// Treasury returns the tokens from which points are paid.
func (s State) Treasury() uint64 { return getU64(s.b, hTreasury) }

// Escrow returns the tokens that the host holds for the run: the treasury, and the stakes and balances of all members.
func (s State) Escrow() uint64 { return getU64(s.b, hEscrow) }

// Payout returns what the message applied last pays out of the escrow, and to whom; 0 unless it was a Claim.
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
