package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Validators: who scores the members' work, in seats that are bounded and go to the highest stakes.

// Validator is a copy of a seat of the table of validators.
type Validator struct {
	Seat    uint32
	Key     key.Public
	Payee   key.Public // who gets what it claims, and its stake when it goes
	Stake   uint64     // tokens; with Trust the weight of its scores
	Balance uint64     // tokens it was rewarded with and has not claimed
	Earned  uint64     // tokens it was ever rewarded with
	Trust   uint8      // 1 to 255
	Since   uint32     // State.Window when it registered
	SinceMs uint64     // and when that was, in the ledger's milliseconds
}

// A validator's trust.
const (
	trustMin = 1
	trustNew = 64 // a newcomer's, so that to register anew gains nothing over having been honest
	trustMax = 255
)

// seat returns the bytes of seat k.
func (s State) seat(k uint32) record.Seat { return s.buffer().Seat(k) }

// seats returns how many seats there are to take.
func (s State) seats() uint32 { return uint32(s.h().Validators()) }

// taken tells whether somebody sits in seat k.
func (s State) taken(k uint32) bool { return s.seat(k).Trust() != 0 }

// seatOf returns the seat of a validator.
func (s State) seatOf(pub key.Public) (uint32, bool) {
	for k := range s.seats() {
		if s.taken(k) && s.seat(k).Key() == pub {
			return k, true
		}
	}
	return 0, false
}

// Validators returns the validators there are, by their seats.
func (s State) Validators() []Validator {
	var list []Validator
	for k := range s.seats() {
		if s.taken(k) {
			list = append(list, s.readSeat(k))
		}
	}
	return list
}

// Validator returns the validator known by pub.
func (s State) Validator(pub key.Public) (Validator, bool) {
	if k, ok := s.seatOf(pub); ok {
		return s.readSeat(k), true
	}
	return Validator{}, false
}

func (s State) readSeat(k uint32) Validator {
	b := s.seat(k)
	return Validator{
		Seat: k, Key: b.Key(), Payee: b.Payee(), Stake: b.Stake(), Balance: b.Balance(),
		Earned: b.Earned(), Trust: b.Trust(), Since: b.Since(), SinceMs: b.SinceMs(),
	}
}

func (s State) registerValidator(env Env, m RegisterValidator) Error {
	switch {
	case env.Sender.IsZero():
		return ErrSender
	case s.seats() == 0:
		return ErrNoScores
	case s.Phase() == Finished:
		return ErrPhase
	case !s.holds(env.Value):
		return ErrValue
	}
	if i, ok := s.Find(env.Sender); ok && s.status(i) == StatusEjected {
		return ErrEjected
	}
	if k, ok := s.seatOf(env.Sender); ok {
		return s.raiseStake(env, m, k)
	}
	if env.Value < max(1, s.h().Stake()) {
		return ErrStake
	}
	k, lowest := s.nextSeat()
	if lowest > 0 && env.Value <= lowest {
		return ErrSeats
	}
	s.clearPayout()
	if lowest > 0 {
		s.vacate(k)
	}
	if m.Payee.IsZero() {
		m.Payee = env.Sender
	}
	b := s.seat(k)
	b.SetKey(env.Sender)
	b.SetPayee(m.Payee)
	b.SetStake(env.Value)
	b.SetSinceMs(env.NowMs)
	b.SetSince(s.Window())
	b.SetTrust(trustNew)
	s.h().SetEscrow(s.Escrow() + env.Value)
	return OK
}

// raiseStake adds to the stake of the validator in seat k.
func (s State) raiseStake(env Env, m RegisterValidator, k uint32) Error {
	b := s.seat(k)
	switch {
	case env.Value == 0:
		return ErrDuplicate
	case !m.Payee.IsZero() && m.Payee != b.Payee():
		return ErrPayee
	}
	s.clearPayout()
	b.SetStake(b.Stake() + env.Value)
	s.h().SetEscrow(s.Escrow() + env.Value)
	return OK
}

// nextSeat returns the seat of the next validator: a free one, or else that of the lowest stake, and that stake. Of several
// equal ones it is that of who came last.
func (s State) nextSeat() (k uint32, lowest uint64) {
	found := false
	for j := range s.seats() {
		if !s.taken(j) {
			return j, 0
		}
		b := s.seat(j)
		stake := b.Stake()
		if !found || stake < lowest || stake == lowest && b.Since() > s.seat(k).Since() {
			k, lowest, found = j, stake, true
		}
	}
	return k, lowest
}

// vacate frees seat k, and pays out what its validator has in the run.
func (s State) vacate(k uint32) {
	b := s.seat(k)
	amount := b.Stake() + b.Balance()
	s.payOut(b.Payee(), amount)
	clear(b)
	if p, stage := s.Scoring(); stage != ScoreNone {
		s.clearSaid(p, k)
	}
}

// payOut takes tokens out of the escrow.
func (s State) payOut(to key.Public, amount uint64) {
	s.h().SetEscrow(s.Escrow() - amount)
	s.h().SetPayout(amount)
	s.h().SetPayoutTo(to)
}

func (s State) retireValidator(env Env, _ RetireValidator) Error {
	k, ok := s.seatOf(env.Sender)
	if !ok {
		return ErrNotValidator
	}
	s.vacate(k)
	return OK
}

// claimSeat pays the sender's payee what the sender was rewarded with as a validator.
func (s State) claimSeat(env Env) Error {
	k, ok := s.seatOf(env.Sender)
	if !ok {
		return ErrNotMember
	}
	b := s.seat(k)
	amount := b.Balance()
	if amount == 0 {
		return ErrNothing
	}
	b.SetBalance(0)
	s.payOut(b.Payee(), amount)
	return OK
}

// Payees returns whom a message of that sender could pay out of the escrow, whether or not it will.
func (s State) Payees(sender key.Public, m Message) []key.Public {
	var list []key.Public
	switch m.(type) {
	case Claim:
		if i, ok := s.Find(sender); ok {
			list = append(list, s.place(i).Payee())
		}
		if k, ok := s.seatOf(sender); ok {
			list = append(list, s.seat(k).Payee())
		}
	case RetireValidator:
		if k, ok := s.seatOf(sender); ok {
			list = append(list, s.seat(k).Payee())
		}
	case RegisterValidator:
		if s.seats() > 0 {
			if k, lowest := s.nextSeat(); lowest > 0 {
				list = append(list, s.seat(k).Payee())
			}
		}
	}
	return list
}

func (s State) commitScores(env Env, m CommitScores) Error {
	k, e := s.mayScore(env, m.Period, ScoreCommit)
	if e != OK {
		return e
	}
	if m.Hash.IsZero() {
		return ErrReveal
	}
	b := s.said(m.Period, k)
	if !b.Hash().IsZero() {
		return ErrDuplicate
	}
	s.setPeriod(m.Period)
	b.SetKey(env.Sender)
	b.SetHash(m.Hash)
	return OK
}

// mayScore returns the sender's seat, if it may speak about the period in this stage.
func (s State) mayScore(env Env, period uint32, stage ScoreStage) (uint32, Error) {
	if s.seats() == 0 {
		return 0, ErrNoScores
	}
	k, ok := s.seatOf(env.Sender)
	if !ok {
		return 0, ErrNotValidator
	}
	now, at := s.Scoring()
	_, last := s.PeriodWindows(period)
	switch {
	case at == ScoreNone || period != now || s.seat(k).Since() > last:
		return 0, ErrPeriod
	case at != stage:
		return 0, ErrHalf
	}
	return k, OK
}

func (s State) revealScores(env Env, m RevealScores) Error {
	k, e := s.mayScore(env, m.Period, ScoreReveal)
	if e != OK {
		return e
	}
	b := s.said(m.Period, k)
	hash := wire.Hash(b.Hash())
	switch {
	case hash.IsZero():
		return ErrNotCommitted
	case b.Revealed():
		return ErrDuplicate
	case len(m.Scores) > MembersMax || !scoresOK(m.Scores):
		return ErrScores
	case len(m.Scores) > 0 && m.Scores[len(m.Scores)-1].Member >= s.Count():
		return ErrScores
	case ScoresHash(s.ID(), env.Sender, m) != hash:
		return ErrReveal
	}
	b.SetRevealed(true)
	given := s.given(m.Period, k)
	for _, v := range m.Scores {
		given.SetScore(v.Member, offset(v.Value))
	}
	return OK
}
