package coordinator

import (
	"math/bits"

	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
)

// This file is what a run's owner may do: pause and resume the run, change its terms, take tokens
// back that nobody has earned, and end the run.

// NoticeMs is how long a run stays paused after its owner has changed its pay, shortened a time or
// lengthened the epoch, so that members can leave with all that they have: a day. A higher pay may
// be worse: of a treasury that is too small for it the first to claim gets all. A run in which
// nobody but its owner takes part may go on at once.
const NoticeMs = 24 * 3600 * 1000

func (Pause) apply(s State, env Env) Error {
	if env.Sender != s.h().Owner() {
		return ErrNotOwner
	}
	switch s.Phase() {
	case Finished:
		return ErrPhase
	case Paused:
		return ErrPaused
	case WaitingForMembers, Warmup:
		s.standDown()
		s.enter(Paused, env)
		return OK
	}
	if s.PausePending() {
		return ErrPaused
	}
	s.h().SetPausePending(true)
	return OK
}

func (Resume) apply(s State, env Env) Error {
	if env.Sender != s.h().Owner() {
		return ErrNotOwner
	}
	switch {
	case s.Phase() != Paused:
		return ErrNotPaused
	case env.NowMs < s.h().NoticeMs():
		if s.others() {
			return ErrNotice
		}
		s.h().SetNoticeMs(0)
	}
	s.enter(WaitingForMembers, env)
	return OK
}

// others reports whether the run has, or owes anything to, members or validators that are not paid
// at its owner's key. A dropped member counts: its client may come back by itself.
func (s State) others() bool {
	owner := s.h().Owner()
	for i := range s.Count() {
		if st := s.status(i); s.place(i).Payee() != owner && (st.Present() || st == StatusDropped || s.Owes(i)) {
			return true
		}
	}
	for _, v := range append(s.Validators(), s.Benched()...) {
		if v.Payee != owner {
			return true
		}
	}
	return false
}

// EndPending reports whether the run will finish at the end of this epoch.
func (s State) EndPending() bool { return s.h().EndPending() }

func (End) apply(s State, env Env) Error {
	switch {
	case env.Sender != s.h().Owner():
		return ErrNotOwner
	case s.Phase() == Finished:
		return ErrPhase
	case s.EndPending():
		return ErrDuplicate
	}
	switch s.Phase() {
	case WaitingForMembers, Warmup, Paused:
		s.standDown()
		s.finish(env)
	default:
		s.h().SetEndPending(true)
	}
	return OK
}

// finish enters the last phase.
func (s State) finish(env Env) {
	s.h().SetPausePending(false)
	s.h().SetEndPending(false)
	s.enter(Finished, env)
}

// Quiet reports whether no check or dispute is open and no result is in flight, so that no member
// can earn or lose anything by what was done so far, except by scores.
func (s State) Quiet() bool {
	return record.Zero(s.cases().Busy()) && record.Zero(s.inFlight())
}

// owed returns what the treasury owes for points, and for the periods that are not settled at this
// emission. It is more than Treasury if the treasury cannot pay that.
func (s State) owed(emission uint64) uint64 {
	now := s.book().PeriodAt(s.Round())
	over, tokens := bits.Mul64(uint64(now-min(s.book().Settled(), now)), emission)
	if over > 0 {
		tokens = TokensMax
	}
	return s.buffer().Unpaid(s.Treasury()) + min(tokens, TokensMax)
}

// Spare returns how much of the treasury nobody has earned: it is neither needed for points, nor
// for the emissions of periods that are not settled.
func (s State) Spare() uint64 {
	return s.Treasury() - min(s.Treasury(), s.owed(s.h().Emission()))
}

func (m Refund) apply(s State, env Env) Error {
	switch {
	case env.Sender != s.h().Owner():
		return ErrNotOwner
	case s.Phase() != Paused && s.Phase() != Finished:
		return ErrPhase
	case m.Amount == 0:
		return ErrNothing
	case !s.Quiet():
		return ErrOpen
	case m.Amount > s.Spare():
		return ErrTreasury
	}
	s.h().SetTreasury(s.Treasury() - m.Amount)
	s.h().PayOut(env.Sender, m.Amount)
	return OK
}

func (m Change) apply(s State, env Env) Error {
	old := s.Config()
	c := old
	c.Rate, c.Emission = m.Rate, m.Emission
	c.WaitingMs, c.WarmupMs, c.RoundTrainMs, c.RoundWitnessMs = m.WaitingMs, m.WarmupMs, m.RoundTrainMs, m.RoundWitnessMs
	c.CooldownMs, c.EpochMs = m.CooldownMs, m.EpochMs
	switch {
	case env.Sender != s.h().Owner():
		return ErrNotOwner
	case s.Phase() != Paused:
		return ErrNotPaused
	case len(c.Check(s.Limits())) > 0:
		return ErrConfig
	case c.Emission < old.Emission: // periods that are not settled were worked for at the old one
		return ErrTooSmall
	case c.Emission > 0 && c.Rate > old.Rate: // points are paid before what is still due
		return ErrRate
	case c.Emission > old.Emission && s.owed(c.Emission) > s.Treasury(): // the first would take it all
		return ErrTreasury
	case !s.Quiet():
		return ErrOpen
	}
	if c.Rate != old.Rate {
		if s.buffer().Unpaid(s.Treasury()) > s.Treasury() {
			return ErrTreasury
		}
		s.payPoints(old.Rate)
	}
	s.putConfig(c)
	s.h().SetTrainLimitMs(min(s.h().TrainLimitMs(), c.RoundTrainMs))
	if c.Rate != old.Rate || c.Emission != old.Emission || c.EpochMs > old.EpochMs || c.WarmupMs < old.WarmupMs || c.RoundTrainMs < old.RoundTrainMs || c.RoundWitnessMs < old.RoundWitnessMs || c.CooldownMs < old.CooldownMs {
		s.h().SetNoticeMs(env.NowMs + NoticeMs)
	}
	return OK
}

// payPoints pays all points to the members' balances.
func (s State) payPoints(rate uint64) {
	for i := range s.Count() {
		b := s.place(i)
		amount := (b.Points() - b.Claimed()) * rate
		b.SetSettled(b.Points())
		b.SetClaimed(b.Points())
		b.SetBalance(b.Balance() + amount)
		s.h().SetTreasury(s.Treasury() - amount)
	}
}

// A Debt is what a closed run pays to one key.
type Debt struct {
	To     key.Public
	Amount uint64
}

// Closable reports whether all that the run owes is certain, so that it can be closed: it has
// finished NoticeMs and Config.UnbondMs ago, nothing is open, and all scores are settled.
func (s State) Closable(nowMs uint64) bool {
	return s.Phase() == Finished && nowMs >= s.PhaseSince()+max(NoticeMs, s.h().UnbondMs()) && s.Quiet() && !s.book().Due()
}

// Debts divides the whole escrow: what the run owes its members and validators, and the rest for
// the owner, which comes last. If the treasury cannot pay all points it pays each the same part of
// its points.
func (s State) Debts() []Debt {
	treasury, points := s.Treasury(), s.buffer().Unclaimed()
	short := s.buffer().Unpaid(treasury) > treasury
	var list []Debt
	for i := range s.Count() {
		b := s.place(i)
		own := b.Points() - b.Claimed()
		pay := own * s.h().Rate()
		if short {
			pay = 0
			if hi, lo := bits.Mul64(own, treasury); hi < points {
				pay, _ = bits.Div64(hi, lo, points)
			}
		}
		list = append(list, Debt{To: b.Payee(), Amount: b.Stake() + b.Balance() + b.Unvested() + pay})
	}
	for _, v := range append(s.Validators(), s.Benched()...) {
		list = append(list, Debt{To: v.Payee, Amount: v.Stake + v.Balance})
	}
	rest := s.Escrow()
	for _, d := range list {
		rest -= d.Amount
	}
	return append(list, Debt{To: s.h().Owner(), Amount: rest})
}
