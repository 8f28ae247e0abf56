package score

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Validators sit in a bounded number of seats, which go to the highest stakes. While periods are
// open, seats, and the stakes in them, change only when a period is settled: until then a newcomer,
// or what a validator adds to its stake, waits on the bench of its seat. A bench also holds what is
// owed to a validator that lost or left the seat.

// Validator is a copy of a seat of the table of validators, or of its bench.
type Validator struct {
	Seat    uint32
	Key     key.Public
	Payee   key.Public   // the key that its claims and, when it retires, its stake are paid to
	Stake   uint64       // tokens; with Trust the weight of its scores
	Balance uint64       // tokens it was rewarded with and has not claimed
	Earned  uint64       // tokens it was ever rewarded with
	Trust   uint8        // 1 to 255; 0 while it waits for a seat
	Since   record.Round // State.Window when it registered
	SinceMs uint64       // when it registered, in the ledger's milliseconds
	Until   uint32       // the last period that it scores; 0: it stays
	Bench   bool         // it waits for the seat, or no longer has it
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

// Validators returns the validators that have seats, by seats.
func (s Book) Validators() []Validator {
	var list []Validator
	for k := range s.SeatsMax() {
		if s.taken(k) {
			list = append(list, readSeat(s.Seat(k), k, false))
		}
	}
	return list
}

// Benched returns who waits for a seat, or is owed tokens and has none, by seats.
func (s Book) Benched() []Validator {
	var list []Validator
	for k := range s.SeatsMax() {
		if b := s.Bench(k); b.Stake() > 0 {
			list = append(list, readSeat(b, k, true))
		}
	}
	return list
}

// Validator returns the validator with this key: in a seat, or else on a bench.
func (s Book) Validator(pub key.Public) (Validator, bool) {
	if k, ok := s.SeatOf(pub); ok {
		return readSeat(s.Seat(k), k, false), true
	}
	if k, ok := s.benchOf(pub, waits); ok {
		return readSeat(s.Bench(k), k, true), true
	}
	if k, ok := s.benchOf(pub, left); ok {
		return readSeat(s.Bench(k), k, true), true
	}
	return Validator{}, false
}

func readSeat(b record.Seat, k uint32, bench bool) Validator {
	return Validator{
		Seat: k, Key: b.Key(), Payee: b.Payee(), Stake: b.Stake(), Balance: b.Balance(),
		Earned: b.Earned(), Trust: b.Trust(), Since: b.Since(), SinceMs: b.SinceMs(), Until: b.Until(), Bench: bench,
	}
}

// waits reports whether a bench holds a stake that waits for the seat, and left whether it holds
// what is owed to a validator that had it.
func waits(b record.Seat) bool { return b.Stake() > 0 && b.Trust() == 0 }

func left(b record.Seat) bool { return b.Trust() > 0 }

// benchOf returns the first bench of this kind that holds something of a key.
func (s Book) benchOf(pub key.Public, kind func(record.Seat) bool) (uint32, bool) {
	for k := range s.SeatsMax() {
		if b := s.Bench(k); kind(b) && b.Key() == pub {
			return k, true
		}
	}
	return 0, false
}

// open reports whether a period runs or is still to be settled.
func (s Book) open() bool {
	return s.Window() > 0 && (s.h().Phase() != record.PhaseFinished || s.Due())
}

// Register gives the sender a seat with the attached tokens as its stake, or adds them to the stake
// that it has. A payee of zero is the sender.
func (s Book) Register(env Env, payee key.Public) record.Error {
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
		return s.raiseStake(env, payee, s.Seat(k), k)
	}
	if k, ok := s.benchOf(env.Sender, waits); ok {
		return s.raiseStake(env, payee, s.Bench(k), k)
	}
	if env.Value < max(1, s.h().Stake()) {
		return record.ErrStake
	}
	k, bid := s.NextSeat()
	if bid > 0 && env.Value <= bid {
		return record.ErrSeats
	}
	if payee.IsZero() {
		payee = env.Sender
	}
	s.h().SetPayment(key.Public{}, 0)
	switch {
	case !s.taken(k):
	case s.open():
		s.payOff(s.Bench(k))
		s.wait(env, payee, k)
		return record.OK
	default:
		s.vacate(k)
	}
	b := s.Seat(k)
	s.put(env, payee, b)
	b.SetTrust(TrustNew)
	return record.OK
}

// put writes the sender's stake to a seat or a bench that is free.
func (s Book) put(env Env, payee key.Public, b record.Seat) {
	b.SetKey(env.Sender)
	b.SetPayee(payee)
	b.SetStake(env.Value)
	b.SetSinceMs(env.NowMs)
	b.SetSince(s.Window())
	s.h().SetEscrow(s.h().Escrow() + env.Value)
}

// wait writes the sender's stake to the bench of seat k.
func (s Book) wait(env Env, payee key.Public, k uint32) { s.put(env, payee, s.Bench(k)) }

// raiseStake adds to what the sender has in b, which is seat k or its bench.
func (s Book) raiseStake(env Env, payee key.Public, b record.Seat, k uint32) record.Error {
	next := s.Bench(k)
	switch {
	case env.Value == 0:
		return record.ErrDuplicate
	case !payee.IsZero() && payee != b.Payee():
		return record.ErrPayee
	case b.Until() != 0:
		return record.ErrPeriod
	case waits(next) && next.Key() != env.Sender && b.Stake()+env.Value <= next.Stake():
		return record.ErrSeats
	}
	s.h().SetPayment(key.Public{}, 0)
	switch {
	case !s.open():
	case waits(next) && next.Key() == env.Sender:
		b = next
	default:
		s.payOff(next)
		s.wait(env, b.Payee(), k)
		return record.OK
	}
	b.SetStake(b.Stake() + env.Value)
	s.h().SetEscrow(s.h().Escrow() + env.Value)
	return record.OK
}

// NextSeat returns the seat that the next validator gets or waits for, and the stake that it must
// exceed: a free seat and 0, or else the seat with the lowest stake, the latest of equal ones.
func (s Book) NextSeat() (k uint32, lowest uint64) {
	found := false
	for j := range s.SeatsMax() {
		if !s.taken(j) {
			return j, 0
		}
		bid := s.bid(j)
		if !found || bid < lowest || bid == lowest && s.Seat(j).Since() > s.Seat(k).Since() {
			k, lowest, found = j, bid, true
		}
	}
	return k, lowest
}

// bid returns the stake that is going to be in seat k.
func (s Book) bid(k uint32) uint64 {
	b, next := s.Seat(k), s.Bench(k)
	switch {
	case waits(next) && next.Key() == b.Key():
		return b.Stake() + next.Stake()
	case waits(next):
		return next.Stake()
	case b.Until() != 0:
		return 0
	}
	return b.Stake()
}

// payOff frees a bench, and pays out what it holds.
func (s Book) payOff(b record.Seat) {
	if amount := b.Stake() + b.Balance(); amount > 0 {
		s.h().PayOut(b.Payee(), amount)
	}
	clear(b)
}

// holding returns all that the validator in seat k has there.
func (s Book) holding(k uint32) uint64 {
	b, next := s.Seat(k), s.Bench(k)
	amount := b.Stake() + b.Balance()
	if waits(next) && next.Key() == b.Key() {
		amount += next.Stake()
	}
	return amount
}

// vacate frees seat k before its time, and pays out all that its validator has there. A stake that
// waits for the seat gets it.
func (s Book) vacate(k uint32) {
	b, next := s.Seat(k), s.Bench(k)
	s.h().PayOut(b.Payee(), s.holding(k))
	if waits(next) && next.Key() == b.Key() {
		clear(next)
	}
	clear(b)
	if p, stage := s.Scoring(); stage != StageNone {
		s.clearSaid(p, k)
	}
	if waits(next) {
		copy(b, next)
		b.SetTrust(TrustNew)
		clear(next)
	}
}

// handOver gives the seats to those that came to wait for them by the end of period p, which has
// been settled, and takes those of the validators that retire.
func (s Book) handOver(p uint32) {
	for k := range s.SeatsMax() {
		b, next := s.Seat(k), s.Bench(k)
		due := waits(next) && s.PeriodAt(next.Since()) <= p
		switch {
		case due && next.Key() == b.Key():
			b.SetStake(b.Stake() + next.Stake())
			clear(next)
		case due:
			before := slices.Clone(b)
			copy(b, next)
			b.SetTrust(TrustNew)
			copy(next, before)
			next.SetUntil(0)
		case b.Until() != 0 && b.Until() <= p && record.Zero(next):
			copy(next, b)
			next.SetUntil(0)
			clear(b)
		}
	}
}

// free reports whether the validator in seat k may take its stake now.
func (s Book) free(env Env, k uint32) bool {
	until := s.Seat(k).Until()
	switch {
	case !s.open():
		return true
	case until == 0:
		return false
	}
	h := s.h()
	return until <= s.Settled() || !h.InEpoch() && h.Phase() != record.PhaseFinished && env.NowMs >= h.PhaseSince()+h.UnbondMs()
}

// payment is what a Claim or a RetireValidator pays a validator.
type payment uint8

const (
	nothing payment = iota
	rewards         // the balance of its seat
	all             // what it has in its seat, which it leaves
	rest            // what is on a bench, since it left
)

// due returns what Claim, or else RetireValidator, pays the sender, and of which seat.
func (s Book) due(env Env, claim bool) (uint32, payment) {
	k, seated := s.SeatOf(env.Sender)
	if seated && s.free(env, k) && (!claim || s.Seat(k).Until() != 0) {
		return k, all
	}
	if j, ok := s.benchOf(env.Sender, left); ok {
		return j, rest
	}
	if seated && claim && s.Seat(k).Balance() > 0 {
		return k, rewards
	}
	return k, nothing
}

// WillPay returns what Claim, or else RetireValidator, would pay the sender, and to whom.
func (s Book) WillPay(env Env, claim bool) (to key.Public, amount uint64) {
	switch k, what := s.due(env, claim); what {
	case all:
		return s.Seat(k).Payee(), s.holding(k)
	case rest:
		b := s.Bench(k)
		return b.Payee(), b.Stake() + b.Balance()
	case rewards:
		return s.Seat(k).Payee(), s.Seat(k).Balance()
	}
	return key.Public{}, 0
}

// WillPayOff returns what is paid to whom if the sender takes a seat.
func (s Book) WillPayOff(env Env) (to key.Public, amount uint64) {
	k, seated := s.SeatOf(env.Sender)
	if !seated {
		if _, waiting := s.benchOf(env.Sender, waits); waiting {
			return key.Public{}, 0
		}
		var bid uint64
		if k, bid = s.NextSeat(); bid > 0 && env.Value <= bid {
			return key.Public{}, 0
		}
	}
	switch b := s.Bench(k); {
	case s.open() && s.taken(k) && !(waits(b) && b.Key() == env.Sender):
		return b.Payee(), b.Stake() + b.Balance()
	case !s.open() && s.taken(k) && !seated:
		return s.Seat(k).Payee(), s.holding(k)
	}
	return key.Public{}, 0
}

// pay pays the sender what is due to it, and reports whether that is anything.
func (s Book) pay(env Env, claim bool) bool {
	switch k, what := s.due(env, claim); what {
	case all:
		s.vacate(k)
	case rest:
		s.payOff(s.Bench(k))
	case rewards:
		b := s.Seat(k)
		s.h().PayOut(b.Payee(), b.Balance())
		b.SetBalance(0)
	default:
		return false
	}
	return true
}

// Retire gives up the sender's seat, or pays what is owed to it since it gave it up or lost it.
func (s Book) Retire(env Env) record.Error {
	if s.pay(env, false) {
		return record.OK
	}
	k, seated := s.SeatOf(env.Sender)
	_, waiting := s.benchOf(env.Sender, waits)
	switch {
	case seated && s.Seat(k).Until() == 0:
		s.Seat(k).SetUntil(s.PeriodAt(s.Window()))
		s.h().SetPayment(key.Public{}, 0)
		return record.OK
	case seated || waiting:
		return record.ErrNothing
	}
	return record.ErrNotValidator
}

// Claim pays the sender's payee what the sender earned as a validator, and its stake if it is free.
func (s Book) Claim(env Env) record.Error {
	if s.pay(env, true) {
		return record.OK
	}
	if _, ok := s.Validator(env.Sender); ok {
		return record.ErrNothing
	}
	return record.ErrNotMember
}

// Votes reports whether the validator in seat k scores period p: it must have had the seat, or
// waited for it, before the period began. If nobody did, those score it that came while it ran.
func (s Book) Votes(k, p uint32) bool {
	if !s.taken(k) || s.Seat(k).Until() != 0 && p > s.Seat(k).Until() {
		return false
	}
	first, last := s.PeriodWindows(p)
	if s.Seat(k).Since() < first {
		return true
	}
	for j := range s.SeatsMax() {
		if s.taken(j) && s.Seat(j).Since() < first {
			return false
		}
	}
	return s.Seat(k).Since() <= last
}

// Commit binds the sender to the scores of a period that hash to this.
func (s Book) Commit(env Env, period uint32, hash wire.Hash) record.Error {
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
func (s Book) mayScore(env Env, period uint32, stage Stage) (uint32, record.Error) {
	if s.SeatsMax() == 0 {
		return 0, record.ErrNoScores
	}
	k, ok := s.SeatOf(env.Sender)
	if !ok {
		return 0, record.ErrNotValidator
	}
	now, at := s.Scoring()
	switch {
	case at == StageNone || period != now || !s.Votes(k, period):
		return 0, record.ErrPeriod
	case at != stage:
		return 0, record.ErrHalf
	}
	return k, record.OK
}

// Reveal takes the scores of a period, which hash to this.
func (s Book) Reveal(env Env, period uint32, scores []Score, sum wire.Hash) record.Error {
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
