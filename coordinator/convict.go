package coordinator

import "github.com/entrain-network/entrain/coordinator/internal/record"

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
	stake := b.Stake()
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
		w.SetBalance(w.Balance() + reward)
	}
	b.SetStake(stake - slashed)
	s.h().SetTreasury(s.Treasury() + slashed - reward)
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
	s.h().SetConvictions(n)
	b := s.conviction(n)
	clear(b)
	b.SetNumber(n)
	b.SetRound(c.round)
	b.SetMember(c.member)
	b.SetKey(m.Key())
	b.SetOffence(uint8(c.offence))
	b.SetBy(NoMember)
	if rewarded {
		b.SetBy(c.by)
		b.SetByKey(s.Key(c.by))
	}
	if c.proof != nil {
		b.SetEvidence(MessageHash(c.proof))
	}
	b.SetSlashed(slashed)
	b.SetAtMs(env.NowMs)
	b.SetFirstRound(m.FirstRound())
	b.SetLastRound(m.LastRound())
	b.SetResults(m.Results())
}

// forfeit takes from member i the points that are not settled, the reward that is not ripe, and what it did since.
func (s State) forfeit(i uint32) {
	b := s.place(i)
	points, settled := b.Points(), b.Settled()
	b.SetPoints(settled)
	b.SetEpochPoints(min(b.EpochPoints(), settled))
	s.h().SetTreasury(s.Treasury() + b.Unvested())
	b.SetUnvested(0)
	s.book().Forfeit(i)
	s.h().SetPointsRetired(s.PointsRetired() + points - settled)
}

// withdrawFromCases takes a member that was ejected out of all checks and disputes. What it was to check is not checked; what
// it is accused of further needs no proof; and where it accuses, a tie-breaker stands in for it.
func (s State) withdrawFromCases(env Env, i uint32) {
	for k := range s.l.ChecksMax {
		b := s.check(k)
		if b.Round() != 0 && !b.Disputed() && (b.Member() == i || b.Verifier() == i) {
			clear(b)
		}
	}
	for k := range uint32(record.DisputesMax) {
		d := s.dispute(k)
		switch {
		case d.free():
		case d.accused() == i:
			d.close()
		case d.b.Accuser() != i:
		case d.stage() == StageTieBreaking:
			d.b.SetAccuser(NoMember)
		case !d.replaceAccuser(env):
			d.close()
		}
	}
}

// strike is what it costs member i not to serve what a check of its result needs: it is dropped without its unsettled points,
// and ejected the third time in a row.
func (s State) strike(env Env, i, round uint32, proof Message) {
	b := s.place(i)
	strikes := b.Strikes() + 1
	b.SetStrikes(strikes)
	b.SetDoubt(doubtMax)
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
	if s.place(i).Stake() >= feeDivisor {
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
			b.SetAstray(0)
		case params.IsZero():
		case b.Astray()+1 < astrayMax:
			b.SetAstray(b.Astray() + 1)
		default:
			b.SetAstray(0)
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
