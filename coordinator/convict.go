package coordinator

// What becomes of those who are found out.

// charge is an offence that is proven.
type charge struct {
	member  uint32
	offence Offence
	round   uint32  // what it is about
	by      uint32  // who is rewarded; NoMember if nobody
	proof   Message // the decisive message; nil if it is silence
}

const (
	rewardDivisor = 2  // half of what is slashed goes to who showed the offence, the rest to the treasury
	bountyDivisor = 16 // a sixteenth for an equivocation, which an accomplice of the offender's choice can show
	feeDivisor    = 8  // an eighth of the stake is the fee of a lesser offence
	// So many tie-breakers at least, and all that vote, must confirm a failure to serve, since it cannot be proven.
	strikeVotes = 2
	strikesMax  = 3 // so many failures in a row to serve what a check needs are an offence
	astrayMax   = 3 // so many reports in a row that name other parameters than the agreed ones are one too
)

// convict records an offence and takes what it costs. For a lesser one that is a fee; who commits another one is ejected,
// loses its stake and the points that are not settled, and has no part in any check or dispute any more.
func (s State) convict(env Env, c charge) {
	b := s.place(c.member)
	stake := getU64(b, mStake)
	slashed := stake
	if c.offence.Lesser() {
		slashed = stake / feeDivisor
	}
	reward := uint64(0)
	rewarded := c.by != NoMember && c.by != c.member && s.status(c.by) != StatusEjected
	if rewarded && !c.offence.Lesser() {
		reward = slashed / rewardDivisor
		if c.offence == Equivocated {
			reward = slashed / bountyDivisor
		}
		w := s.place(c.by)
		putU64(w, mBalance, getU64(w, mBalance)+reward)
	}
	putU64(b, mStake, stake-slashed)
	putU64(s.b, hTreasury, s.Treasury()+slashed-reward)
	s.recordConviction(env, c, slashed, rewarded)
	if c.offence.Lesser() {
		return
	}
	s.forfeit(c.member)
	s.leave(c.member, StatusEjected, env)
	s.withdrawFromCases(env, c.member)
}

func (s State) recordConviction(env Env, c charge, slashed uint64, rewarded bool) {
	m := s.place(c.member)
	n := s.ConvictionsTotal() + 1
	putU32(s.b, hConvictions, n)
	b := s.conviction(n)
	clear(b)
	putU32(b, cNumber, n)
	putU32(b, cRound, c.round)
	putU32(b, cMember, c.member)
	put32(b, cKey, get32(m, mKey))
	putU8(b, cOffence, uint8(c.offence))
	putU32(b, cBy, NoMember)
	if rewarded {
		putU32(b, cBy, c.by)
		put32(b, cByKey, s.Key(c.by))
	}
	if c.proof != nil {
		put32(b, cEvidence, MessageHash(c.proof))
	}
	putU64(b, cSlashed, slashed)
	putU64(b, cAtMs, env.NowMs)
	putU32(b, cFirstRound, getU32(m, mFirstRound))
	putU32(b, cLastRound, getU32(m, mLastRound))
	putU32(b, cResults, getU32(m, mResults))
}

// forfeit takes from member i the points that are not settled, the reward that is not ripe, and what it did since.
func (s State) forfeit(i uint32) {
	b := s.place(i)
	points, settled := getU64(b, mPoints), getU64(b, mSettled)
	putU64(b, mPoints, settled)
	putU64(b, mRipe, min(getU64(b, mRipe), settled))
	putU64(s.b, hTreasury, s.Treasury()+getU64(b, mUnripe))
	putU64(b, mUnripe, 0)
	s.clearTallies(i)
	putU64(s.b, hRetired, s.PointsRetired()+points-settled)
}

// withdrawFromCases takes a member that was ejected out of all checks and disputes. What it was to check is not checked; what
// it is accused of further needs no proof; and where it accuses, a tie-breaker stands in for it.
func (s State) withdrawFromCases(env Env, i uint32) {
	for k := range s.l.checksMax {
		b := s.check(k)
		if getU32(b, kRound) != 0 && getU8(b, kDisputed) == 0 && (getU32(b, kMember) == i || getU32(b, kVerifier) == i) {
			clear(b)
		}
	}
	for k := range uint32(disputesMax) {
		d := s.dispute(k)
		switch {
		case d.free():
		case d.accused() == i:
			d.close()
		case d.accuser() != i:
		case d.stage() == StageTieBreaking:
			putU32(d.b, dAccuser, NoMember)
		case !d.replaceAccuser(env):
			d.close()
		}
	}
}

// strike is what it costs member i not to serve what a check of its result needs: it is dropped without its unsettled points,
// and ejected the third time in a row.
func (s State) strike(env Env, i, round uint32, proof Message) {
	b := s.place(i)
	strikes := getU8(b, mStrikes) + 1
	putU8(b, mStrikes, strikes)
	putU8(b, mDoubt, doubtMax)
	if strikes >= strikesMax {
		s.convict(env, charge{member: i, offence: NotServing, round: round, by: NoMember, proof: proof})
		return
	}
	s.forfeit(i)
	if s.status(i).Present() {
		s.leave(i, StatusDropped, env)
	}
}

// absent charges member i, which is dropped for having missed too often, with a fee if it has a stake.
func (s State) absent(env Env, i uint32) {
	if getU64(s.place(i), mStake) >= feeDivisor {
		s.convict(env, charge{member: i, offence: Absence, round: s.Round(), by: NoMember})
	}
}

// judgeWitnesses holds against the witnesses of round r, whose parameters are agreed, that they named others. Once may be an
// accident; who does it in three reports in a row is dropped and pays a fee. Who names none vouches for none, and is not
// charged.
func (s State) judgeWitnesses(env Env, r Round) {
	agreed, ok := r.Agreed()
	if !ok {
		return
	}
	for p := range r.electedLen() {
		i := r.electedAt(p)
		if !r.reported(p) || s.status(i) != StatusActive {
			continue
		}
		b := s.place(i)
		params := r.report(p).Params
		switch {
		case params == agreed:
			putU8(b, mAstray, 0)
		case params.IsZero():
		case getU8(b, mAstray)+1 < astrayMax:
			putU8(b, mAstray, getU8(b, mAstray)+1)
		default:
			putU8(b, mAstray, 0)
			s.convict(env, charge{member: i, offence: Contradiction, round: r.Number(), by: NoMember})
			s.leave(i, StatusDropped, env)
		}
	}
}

// equivocation convicts a member that signed two commitments for one round.
func (s State) equivocation(env Env, m Equivocation) Error {
	a, b := m.A.Commitment, m.B.Commitment
	if a.Run != s.ID() || b.Run != a.Run || b.Round != a.Round || b.Member != a.Member || a == b {
		return ErrNoConflict
	}
	if a.Member >= s.Count() {
		return ErrNoMember
	}
	if s.status(a.Member) == StatusEjected {
		return ErrEjected
	}
	pub := s.Key(a.Member)
	if !m.A.Verify(pub) || !m.B.Verify(pub) {
		return ErrCommitment
	}
	by, ok := s.Find(env.Sender)
	if !ok || by == a.Member {
		by = NoMember
	}
	s.convict(env, charge{member: a.Member, offence: Equivocated, round: a.Round, by: by, proof: m})
	return OK
}
