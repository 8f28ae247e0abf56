package dispute

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/wire"
)

// Offences and what they cost.

// Charge is a proven offence.
type Charge struct {
	Member  record.Member
	Offence Offence
	Round   record.Round  // the round of the offence
	By      record.Member // the member to reward; NoMember if there is none
	Dispute uint32        // number of the dispute that By won; 0 if there was none
	Proof   wire.Hash     // hash of the decisive message; zero if the offence is silence
}

const (
	rewardDivisor = 2  // half of a slashed stake rewards the proof; the rest goes to the treasury
	bountyDivisor = 16 // a sixteenth for an equivocation, which an accomplice can prove at any time
	FeeDivisor    = 8  // the fee for a lesser offence is an eighth of the stake
	// A failure to serve cannot be proven: all that vote, and at least this number, must confirm it.
	strikeVotes = 2
	StrikesMax  = 3 // failures in a row to serve what a check needs that are an offence
	AstrayMax   = 3 // reports in a row with other parameters than the agreed ones that are one
)

// Convict records an offence and takes its cost: a fee for a lesser one; otherwise the member is
// ejected, forfeits its stake and unsettled points, and leaves all checks and disputes.
func (s Cases) Convict(env Env, c Charge) {
	b := s.Place(c.Member)
	stake := b.Stake()
	slashed := stake
	if c.Offence.Lesser() {
		slashed = stake / FeeDivisor
	}
	accused := false
	if !c.Offence.unproven() { // a round's end may charge all members with absence
		// The first accuser is rewarded: otherwise the member could choose to lose to an accomplice.
		first, id := s.accuser(c.Member)
		if accused = first != NoMember; accused && (c.By == NoMember || c.Dispute == 0 || id < c.Dispute) {
			c.By = first
		}
	}
	reward := uint64(0)
	rewarded := c.By != NoMember && c.By != c.Member && !s.Place(c.By).Ejected()
	if rewarded && !c.Offence.Lesser() {
		reward = slashed / rewardDivisor
		if c.Offence == Equivocated && !accused {
			reward = slashed / bountyDivisor
		}
		w := s.Place(c.By)
		w.SetBalance(w.Balance() + reward)
	}
	b.SetStake(stake - slashed)
	s.h().SetTreasury(s.h().Treasury() + slashed - reward)
	s.recordConviction(env, c, slashed, rewarded)
	if c.Offence.Lesser() {
		return
	}
	s.forfeit(c.Member)
	s.Leave(c.Member, record.StatusEjected, env.NowMs)
	s.withdrawFromCases(env, c.Member)
}

func (s Cases) recordConviction(env Env, c Charge, slashed uint64, rewarded bool) {
	m := s.Place(c.Member)
	n := s.h().Convictions() + 1
	s.h().SetConvictions(n)
	b := s.Conviction(n)
	clear(b)
	b.SetNumber(n)
	b.SetRound(c.Round)
	b.SetMember(c.Member)
	b.SetKey(m.Key())
	b.SetOffence(uint8(c.Offence))
	b.SetBy(NoMember)
	if rewarded {
		b.SetBy(c.By)
		b.SetByKey(s.Place(c.By).Key())
	}
	b.SetEvidence(c.Proof)
	b.SetSlashed(slashed)
	b.SetAtMs(env.NowMs)
	b.SetFirstRound(m.FirstRound())
	b.SetLastRound(m.LastRound())
	b.SetResults(m.Results())
}

// forfeit takes unsettled points, the unvested reward and unsettled work from member i.
func (s Cases) forfeit(i record.Member) {
	b := s.Place(i)
	points, settled := b.Points(), b.Settled()
	b.SetPoints(settled)
	b.SetEpochPoints(min(b.EpochPoints(), settled))
	s.h().SetTreasury(s.h().Treasury() + b.Unvested())
	b.SetUnvested(0)
	score.Book{Buffer: s.Buffer}.Forfeit(i)
	s.h().SetPointsRetired(s.h().PointsRetired() + points - settled)
}

// accuser returns the accuser in the oldest open accusation against member i, or NoMember, and the
// number of that dispute.
func (s Cases) accuser(i record.Member) (by record.Member, oldest uint32) {
	by = NoMember
	for k := range uint32(record.DisputesMax) {
		d := s.dispute(k)
		if d.free() || d.accused() != i || d.b.Unserved() || d.b.Accuser() == NoMember || by != NoMember && d.b.ID() > oldest {
			continue
		}
		by, oldest = d.b.Accuser(), d.b.ID()
	}
	return by, oldest
}

// withdrawFromCases removes an ejected member from all checks and disputes. Its checks lapse,
// accusations against it need no proof and are paid for as work, and a tie-breaker replaces it as
// an accuser.
func (s Cases) withdrawFromCases(env Env, i record.Member) {
	for k := s.NextCheck(0); k < s.Layout.ChecksMax; k = s.NextCheck(k + 1) {
		b := s.Check(k)
		if !b.Disputed() && (b.Member() == i || b.Verifier() == i) {
			clear(b)
		}
	}
	for k := range uint32(record.DisputesMax) {
		d := s.dispute(k)
		switch {
		case d.free():
		case d.accused() == i:
			c := d.copy()
			d.close()
			s.payAccusation(c, false)
		case d.b.Accuser() != i:
		case d.stage() == StageTieBreaking:
			d.b.SetAccuser(NoMember)
		case !d.replaceAccuser(env):
			d.close()
		}
	}
}

// strike punishes member i for not serving what a check of its result needs: it is dropped without
// its unsettled points and pays a fee, and the third time, unless forgiven, it is convicted.
func (s Cases) strike(env Env, i record.Member, round record.Round, proof wire.Hash) {
	b := s.Place(i)
	strikes := b.Strikes() + 1
	b.SetStrikes(strikes)
	b.SetDoubt(DoubtMax)
	if strikes >= StrikesMax {
		s.Convict(env, Charge{Member: i, Offence: NotServing, Round: round, By: NoMember, Proof: proof})
		return
	}
	s.forfeit(i)
	if s.Place(i).Present() {
		s.Leave(i, record.StatusDropped, env.NowMs)
	}
	s.absent(env, i)
}

// absent charges member i, which was not there when it was needed, with a fee if it has a stake.
func (s Cases) absent(env Env, i record.Member) {
	if s.Place(i).Stake() >= FeeDivisor {
		s.Convict(env, Charge{Member: i, Offence: Absence, Round: s.h().Round(), By: NoMember})
	}
}

// Equivocation convicts a member that signed two commitments for one round.
func (s Cases) Equivocation(env Env, first, second Signed) record.Error {
	a, b := first.Commitment, second.Commitment
	if a.Run != s.h().ID() || b.Run != a.Run || b.Round != a.Round || b.Member != a.Member || a == b {
		return record.ErrNoConflict
	}
	if a.Member >= s.h().Count() {
		return record.ErrNoMember
	}
	if s.Place(a.Member).Ejected() {
		return record.ErrEjected
	}
	pub := s.Place(a.Member).Key()
	if !first.Verify(pub) || !second.Verify(pub) {
		return record.ErrCommitment
	}
	by, ok := s.Find(env.Sender)
	if !ok {
		by = NoMember
	}
	s.Convict(env, Charge{Member: a.Member, Offence: Equivocated, Round: a.Round, By: by, Proof: env.Proof})
	return record.OK
}
