package score

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Validators sit in a bounded number of seats, which go to the highest stakes.

// Validator is a copy of a seat of the table of validators.
type Validator struct {
	Seat    uint32
	Key     key.Public
	Payee   key.Public   // the key that its claims and, when it retires, its stake are paid to
	Stake   uint64       // tokens; with Trust the weight of its scores
	Balance uint64       // tokens it was rewarded with and has not claimed
	Earned  uint64       // tokens it was ever rewarded with
	Trust   uint8        // 1 to 255
	Since   record.Round // State.Window when it registered
	SinceMs uint64       // when it registered, in the ledger's milliseconds
}

// Bounds of a validator's trust.
const (
	TrustMin = 1
	TrustNew = 64 // a newcomer's: registering again gains nothing over having been honest
	TrustMax = 255
)

// SeatsMax returns the number of seats that can be taken.
func (s Book) SeatsMax() uint32 { return uint32(s.h().Validators()) }

// taken reports whether seat k has a validator.
func (s Book) taken(k uint32) bool { return s.Seat(k).Trust() != 0 }

// SeatOf returns the seat of the validator with this key.
func (s Book) SeatOf(pub key.Public) (uint32, bool) {
	for k := range s.SeatsMax() {
		if s.taken(k) && s.Seat(k).Key() == pub {
			return k, true
		}
	}
	return 0, false
}

// Validators returns the validators, by seats.
func (s Book) Validators() []Validator {
	var list []Validator
	for k := range s.SeatsMax() {
		if s.taken(k) {
			list = append(list, s.readSeat(k))
		}
	}
	return list
}

// Validator returns the validator with this key.
func (s Book) Validator(pub key.Public) (Validator, bool) {
	if k, ok := s.SeatOf(pub); ok {
		return s.readSeat(k), true
	}
	return Validator{}, false
}

func (s Book) readSeat(k uint32) Validator {
	b := s.Seat(k)
	return Validator{
		Seat: k, Key: b.Key(), Payee: b.Payee(), Stake: b.Stake(), Balance: b.Balance(),
		Earned: b.Earned(), Trust: b.Trust(), Since: b.Since(), SinceMs: b.SinceMs(),
	}
}

// Register gives the sender a seat with the attached tokens as its stake, or adds them to the stake
// that it has. A payee of zero is the sender.
func (s Book) Register(env Env, payee key.Public) record.Refusal {
	switch {
	case env.Sender.IsZero():
		return record.ErrSender
	case s.SeatsMax() == 0:
		return record.ErrNoScores
	case s.h().Phase() == record.PhaseFinished:
		return record.ErrPhase
	case !s.h().CanHold(env.Value):
		return record.ErrValue
	}
	if i, ok := s.Find(env.Sender); ok && s.Place(i).Ejected() {
		return record.ErrEjected
	}
	if k, ok := s.SeatOf(env.Sender); ok {
		return s.raiseStake(env, payee, k)
	}
	if env.Value < max(1, s.h().Stake()) {
		return record.ErrStake
	}
	k, lowest := s.NextSeat()
	if lowest > 0 && env.Value <= lowest {
		return record.ErrSeats
	}
	s.h().SetPayment(key.Public{}, 0)
	if lowest > 0 {
		s.vacate(k)
	}
	if payee.IsZero() {
		payee = env.Sender
	}
	b := s.Seat(k)
	b.SetKey(env.Sender)
	b.SetPayee(payee)
	b.SetStake(env.Value)
	b.SetSinceMs(env.NowMs)
	b.SetSince(s.Window())
	b.SetTrust(TrustNew)
	s.h().SetEscrow(s.h().Escrow() + env.Value)
	return record.OK
}

// raiseStake adds to the stake of the validator in seat k.
func (s Book) raiseStake(env Env, payee key.Public, k uint32) record.Refusal {
	b := s.Seat(k)
	switch {
	case env.Value == 0:
		return record.ErrDuplicate
	case !payee.IsZero() && payee != b.Payee():
		return record.ErrPayee
	}
	s.h().SetPayment(key.Public{}, 0)
	b.SetStake(b.Stake() + env.Value)
	s.h().SetEscrow(s.h().Escrow() + env.Value)
	return record.OK
}

// NextSeat returns the seat that the next validator gets, and the stake that this replaces: a free
// seat and 0, or else the seat with the lowest stake, the latest of equal ones.
func (s Book) NextSeat() (k uint32, lowest uint64) {
	found := false
	for j := range s.SeatsMax() {
		if !s.taken(j) {
			return j, 0
		}
		b := s.Seat(j)
		stake := b.Stake()
		if !found || stake < lowest || stake == lowest && b.Since() > s.Seat(k).Since() {
			k, lowest, found = j, stake, true
		}
	}
	return k, lowest
}

// vacate frees seat k, and pays out its validator's stake and balance.
func (s Book) vacate(k uint32) {
	b := s.Seat(k)
	amount := b.Stake() + b.Balance()
	s.h().PayOut(b.Payee(), amount)
	clear(b)
	if p, stage := s.Scoring(); stage != StageNone {
		s.clearSaid(p, k)
	}
}

// Retire gives up the sender's seat.
func (s Book) Retire(env Env) record.Refusal {
	k, ok := s.SeatOf(env.Sender)
	if !ok {
		return record.ErrNotValidator
	}
	s.vacate(k)
	return record.OK
}

// Claim pays the sender's payee what the sender earned as a validator.
func (s Book) Claim(env Env) record.Refusal {
	k, ok := s.SeatOf(env.Sender)
	if !ok {
		return record.ErrNotMember
	}
	b := s.Seat(k)
	amount := b.Balance()
	if amount == 0 {
		return record.ErrNothing
	}
	b.SetBalance(0)
	s.h().PayOut(b.Payee(), amount)
	return record.OK
}

// Commit binds the sender to the scores of a period that hash to this.
func (s Book) Commit(env Env, period uint32, hash wire.Hash) record.Refusal {
	k, e := s.mayScore(env, period, StageCommit)
	if e != record.OK {
		return e
	}
	if hash.IsZero() {
		return record.ErrReveal
	}
	b := s.Ballot(period, k)
	if !b.Hash().IsZero() {
		return record.ErrDuplicate
	}
	s.setPeriod(period)
	b.SetKey(env.Sender)
	b.SetHash(hash)
	return record.OK
}

// mayScore returns the sender's seat if it may act on the period in this stage.
func (s Book) mayScore(env Env, period uint32, stage Stage) (uint32, record.Refusal) {
	if s.SeatsMax() == 0 {
		return 0, record.ErrNoScores
	}
	k, ok := s.SeatOf(env.Sender)
	if !ok {
		return 0, record.ErrNotValidator
	}
	now, at := s.Scoring()
	_, last := s.PeriodWindows(period)
	switch {
	case at == StageNone || period != now || s.Seat(k).Since() > last:
		return 0, record.ErrPeriod
	case at != stage:
		return 0, record.ErrHalf
	}
	return k, record.OK
}

// Reveal takes the scores of a period, which hash to this.
func (s Book) Reveal(env Env, period uint32, scores []Score, sum wire.Hash) record.Refusal {
	k, e := s.mayScore(env, period, StageReveal)
	if e != record.OK {
		return e
	}
	b := s.Ballot(period, k)
	hash := b.Hash()
	switch {
	case hash.IsZero():
		return record.ErrNotCommitted
	case b.Revealed():
		return record.ErrDuplicate
	case uint64(len(scores)) > uint64(s.Layout.Members) || !InOrder(scores):
		return record.ErrScores
	case len(scores) > 0 && scores[len(scores)-1].Member >= s.h().Count():
		return record.ErrScores
	case sum != hash:
		return record.ErrReveal
	}
	b.SetRevealed(true)
	given := s.Given(period, k)
	for _, v := range scores {
		given.SetScore(v.Member, Offset(v.Value))
	}
	return record.OK
}
