// Package score is the part of a run's rules about validators and scores: seats, periods, the
// scores that validators commit to and reveal, and their settlement. It works on its own parts of
// the run's buffer, the seats, tallies and ballots, and on the rewards and the average score of
// members.
//
// # Rules
//
// If Config.Validators is not 0 the members' work is scored, in either exchange. A validator takes
// a seat with a stake (RegisterValidator). When all seats are taken, a higher stake gets the seat
// of the lowest. RetireValidator gives the seat up. No offence of a validator costs tokens, only
// trust and rewards.
//
// While periods run, seats and stakes in them change only when a period is settled. An offer for a
// seat waits on its bench until the period is settled in which it came, and cannot be taken back;
// what a validator adds to its own stake waits there too. A higher offer, or the validator's own,
// replaces one that waits, which is paid out at once. A validator that is outbid or retires scores
// all that was done while it had the seat. After that its stake and balance are on the bench, and
// it claims them. A run that waits or is paused lets those that retire go after UnbondMs. Before
// the first round and after the last period is settled all of this takes effect at once.
//
// A period is scored by the validators that had or waited for their seats before it began; or, if
// nobody did, by those that came while it ran. So no stake decides about work that was done before
// it was put up, and none leaves before what it decided is settled.
//
// ScoreWindows rounds are a period: period p has the rounds (p-1)*ScoreWindows+1 to p*ScoreWindows.
// It is scored during period p+1, and settled when the first round of period p+2 opens:
//
//	first half of p+1    CommitScores: a hash of run, validator, period, salt and scores
//	second half          RevealScores: exactly these, so no validator can copy another
//
// After the run has finished, windows are counted on until all periods are settled, of WindowBlocks
// blocks each, or of RoundTrainMs with Peers (State.Window).
//
// A validator's weight is its stake times its trust. The scores of a member with accepted results
// in the period are combined if the validators that scored it have more than half of all weight,
// that of silent validators included. A member that is a validator does not score itself.
//
//	m = the median by weight of the scores          d = the median by weight of |score - m|
//	s = the mean by weight of the scores, each clipped to [m-d, m+d]
//
// Validators with less than half of the weight thus move s by no more than the others differ among
// themselves, and not at all if those agree. If each of two scores has exactly half of the weight
// behind it, m is the score between them that is nearest to the member's average so far. Scores are
// integers from -ScoreOne to ScoreOne, for -1 to 1; s is rounded to the nearest. Then, in this
// order:
//
//   - Penalty: a member with s <= 0 loses Penalty percent of Emission/Slots from its unvested
//     reward, as far as that goes.
//   - Vesting: the rest of the unvested rewards becomes the members' balances.
//   - Emission: Emission tokens are given, or what the treasury has beyond what it owes for points.
//     ValidatorPercent of it goes to validators in proportion to weight times agreement. The rest
//     goes to members with s > 0 in proportion to the sequences of their accepted results times s,
//     or times the median, by sequences, of all s > 0, if that is less. Parts are rounded down; the
//     remainder goes, one token each, to the parts that lost most by rounding. If no member is
//     scored nothing is given; if no score is above 0, nothing goes to members.
//
// A member's reward is unvested until the next period is settled. The next penalty or a conviction
// that ejects the member may take it until then. After the last period all rewards vest.
//
// A validator's agreement is the mean, over all scored members, of 1 - |its score - s| / 0.5, where
// that is above 0; a member that it did not score counts as 0. Where halves of the weight were
// apart, a score between them agrees in full. Its trust is 1 to 255, and 64 at
// first. It moves towards 1 + 254 times the same mean over the members that it did score: half of
// the way down, or a sixteenth of the way up. A validator that commits but never reveals loses half
// its trust. One that stays silent when there was work to score loses a quarter, so silent
// validators soon stop blocking the majority.
//
// The package is replicated (see package wire).
package score

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Book is a run's buffer as this package sees it.
type Book struct{ record.Buffer }

func (s Book) h() record.Header { return s.Header() }

// Env is what a message's host knows when it applies the message.
type Env struct {
	NowMs, Height uint64
	Sender        key.Public
	Value         uint64 // attached tokens
}

// Score is what a validator finds a member's work in a period worth.
type Score struct {
	Member record.Member // its place in the table of members
	Value  int16         // from -One to One, for -1 to 1
}

// Bytes is the length of a score's encoding.
const Bytes = 4 + 2

// Append appends the encoding of scores: their number, and of each U32 member and U16 score, in
// two's complement.
func Append(dst []byte, scores []Score) []byte {
	dst = wire.AppendU32(dst, uint32(len(scores)))
	for _, v := range scores {
		dst = append(dst, 0, 0, 0, 0, 0, 0)
		record.Rated(dst[len(dst)-Bytes:]).Put(v.Member, uint16(v.Value))
	}
	return dst
}

// Read reads n scores, which must be in order. The reader must have their bytes.
func Read(r *wire.Reader, n uint32) []Score {
	if n == 0 {
		return nil
	}
	raw, scores := r.Bytes(Bytes*int(n)), make([]Score, n)
	for k := range scores {
		v := record.Rated(raw[Bytes*k:][:Bytes])
		scores[k] = Score{Member: v.Member(), Value: int16(v.Score())}
	}
	if !InOrder(scores) {
		r.Fail(wire.ErrNotCanonical)
	}
	return scores
}

// One is the fixed-point score 1.
const One = 32767

// InOrder reports whether scores are in range and in the order of members.
func InOrder(scores []Score) bool {
	least := uint64(0)
	for _, v := range scores {
		if v.Value < -One || uint64(v.Member) < least {
			return false
		}
		least = uint64(v.Member) + 1
	}
	return true
}

// Stage is what validators can do about the period that is being scored.
type Stage uint8

// The stages of scoring a period.
const (
	StageNone   Stage = 0 // no period is being scored
	StageCommit Stage = 1 // CommitScores
	StageReveal Stage = 2 // RevealScores
)

// String returns the stage in words.
func (s Stage) String() string {
	switch s {
	case StageCommit:
		return "committing"
	case StageReveal:
		return "revealing"
	}
	return "none"
}

// Scores are stored with an offset, so that 0 means no score.
const (
	Zero    = 32768        // stands for the score 0
	highest = Zero + 32767 // stands for the score 1; 1 stands for -1
)

// Offset returns the stored form of a score.
func Offset(v int16) uint16 { return uint16(v) ^ Zero }

// Fixed returns the score that is stored as u, and 0 if there is none.
func Fixed(u uint16) int16 {
	if u == 0 {
		return 0
	}
	return int16(u ^ Zero)
}

// Window returns the number of the window that runs: the round, and after the run's end the windows
// that have passed since, in which the last periods are scored.
func (s Book) Window() record.Round { return s.h().Round() + record.Round(s.Tail()) }

// Tail returns the number of windows since the run's end.
func (s Book) Tail() uint32 { return s.h().Tail() }

// TailMax bounds the windows that pass after a run's end.
const TailMax = 3 * record.ScoreWindowsMax

// Settled returns the period that was settled last.
func (s Book) Settled() uint32 { return s.h().PeriodSettled() }

// PeriodAt returns the period of a window. The first is 1.
func (s Book) PeriodAt(window record.Round) uint32 {
	n := s.h().ScoreWindows()
	if n == 0 {
		return 0
	}
	return (uint32(window) + n - 1) / n
}

// Period returns the period that runs, the first being 1; 0 if the run has no scores or has not
// begun.
func (s Book) Period() uint32 { return s.PeriodAt(s.Window()) }

// PeriodWindows returns the first and the last window of a period.
func (s Book) PeriodWindows(period uint32) (first, last record.Round) {
	n := s.h().ScoreWindows()
	return record.Round((period-1)*n + 1), record.Round(period * n)
}

// Scoring returns the period that is being scored, which is the one before the current, and what
// validators can do about it now.
func (s Book) Scoring() (uint32, Stage) {
	w := s.Window()
	now := s.PeriodAt(w)
	if now < 2 || s.Settled()+1 != now-1 || s.SeatsMax() == 0 || s.h().Phase() == record.PhaseFinished && !s.Due() {
		return 0, StageNone
	}
	n := s.h().ScoreWindows()
	if uint32(w-1)%n < n/2 {
		return now - 1, StageCommit
	}
	return now - 1, StageReveal
}

// Due reports whether a finished run has periods left to settle.
func (s Book) Due() bool { return s.SeatsMax() > 0 && s.Settled() < s.PeriodAt(s.h().Round()) }

// tallyFor returns member i's part of the tally of the period that a round is in.
func (s Book) tallyFor(i record.Member, round record.Round) record.Work {
	p := s.PeriodAt(round)
	t := s.TallyOf(p)
	t.SetPeriod(p)
	return t.Work(i)
}

// Accepted adds the sequences of member i's accepted result of a round to the tally.
func (s Book) Accepted(i record.Member, round record.Round, sequences uint32) {
	if s.SeatsMax() > 0 {
		b := s.tallyFor(i, round)
		b.SetSequences(uint32(min(uint64(b.Sequences())+uint64(sequences), 1<<32-1)))
	}
}

// Missed notes that member i's result of a round was not accepted.
func (s Book) Missed(i record.Member, round record.Round) {
	if s.SeatsMax() > 0 {
		s.tallyFor(i, round).SetMissed(true)
	}
}

// Forfeit erases the work of member i in periods that are not settled.
func (s Book) Forfeit(i record.Member) {
	if s.Layout.Validators == 0 {
		return
	}
	for k := range uint32(record.TalliesKept) {
		t := s.TallyOf(k)
		if t.Period() > s.Settled() {
			clear(t.Work(i))
		}
	}
}

// Forget erases every score about place i, which is given to another member.
func (s Book) Forget(i record.Member) {
	if s.Layout.Validators == 0 {
		return
	}
	for k := range uint32(record.TalliesKept) {
		clear(s.TallyOf(k).Work(i))
	}
	for p := range uint32(record.BallotsKept) {
		for k := range s.Layout.Validators {
			s.Given(p, k).SetScore(i, 0)
		}
	}
}

// Pending reports whether member i has work that may still be scored.
func (s Book) Pending(i record.Member) bool {
	return slices.ContainsFunc(s.unsettled(), func(t record.Tally) bool { return t.Work(i).Sequences() > 0 })
}

// MarkPending sets the bits of the members that have such work.
func (s Book) MarkPending(bitmap []byte) {
	for _, t := range s.unsettled() {
		t.Mark(bitmap, s.h().Count())
	}
}

// unsettled returns the tallies of the work that may still be scored, and paid.
func (s Book) unsettled() []record.Tally {
	if s.Layout.Validators == 0 || s.h().Emission() == 0 {
		return nil
	}
	list := make([]record.Tally, 0, record.TalliesKept)
	for k := range uint32(record.TalliesKept) {
		if t := s.TallyOf(k); t.Period() > s.Settled() {
			list = append(list, t)
		}
	}
	return list
}

// setPeriod claims the place for the ballots of a period. Settling the period before has cleared
// it.
func (s Book) setPeriod(period uint32) { s.Ballots(period).SetPeriod(period) }

// clearSaid erases the ballot of the validator in seat k.
func (s Book) clearSaid(period, k uint32) {
	clear(s.Ballot(period, k))
	clear(s.Given(period, k))
}

// MemberScore is the outcome of one member's work in a period.
type MemberScore struct {
	Member    record.Member
	Sequences uint32 // in its accepted results in the period
	Scored    bool   // validators with more than half of the weight scored it
	Score     int16  // the combined score, in units of 1/One
	Weight    uint32 // its share of the members' emission, in units of 1/WeightOne
	Reward    uint64 // tokens it was given
	Penalty   uint64 // tokens taken from its unvested reward
}

// WeightOne is the whole of the members' emission.
const WeightOne = 1 << 30

// ValidatorScores is one validator's ballot in a period, and its reward.
type ValidatorScores struct {
	Seat      uint32
	Key       key.Public
	Committed bool
	Revealed  bool
	Scores    []Score // as revealed
	// The rest is set when the period is settled.
	Stake     uint64 // at that time
	Trust     uint8  // after the period
	Agreement uint16 // mean closeness to the combined scores, 0 to AgreementOne
	Reward    uint64 // tokens it was given
}

// AgreementOne is the agreement of a validator whose scores equal the combined ones.
const AgreementOne = 65535

// Scores is a period's work, ballots and rewards.
type Scores struct {
	Period      uint32
	First, Last record.Round // its windows
	Settled     bool
	Members     []MemberScore     // the members with accepted results in the period, in order
	Validators  []ValidatorScores // the validators that committed, by seats
}

// Scores returns what is known of a period: the current one, the one that is being scored, or the
// one settled last.
func (s Book) Scores(period uint32) (Scores, bool) {
	now := s.Period()
	if s.SeatsMax() == 0 || period == 0 || period > now || period+record.TalliesKept <= now || period < s.Settled() {
		return Scores{}, false
	}
	p := Scores{Period: period, Settled: period <= s.Settled()}
	p.First, p.Last = s.PeriodWindows(period)
	if t := s.TallyOf(period); t.Period() == period {
		for i := range s.h().Count() {
			if b := t.Work(i); b.Sequences() > 0 {
				p.Members = append(p.Members, readTally(b, i))
			}
		}
	}
	if s.Ballots(period).Period() != period {
		return p, true
	}
	for k := range s.SeatsMax() {
		if v, ok := s.readSaid(period, k); ok {
			p.Validators = append(p.Validators, v)
		}
	}
	return p, true
}

func readTally(b record.Work, i record.Member) MemberScore {
	u := b.Score()
	m := MemberScore{Member: i, Sequences: b.Sequences(), Scored: u != 0, Score: Fixed(u), Weight: b.Weight()}
	if u > Zero {
		m.Reward = b.Amount()
	} else {
		m.Penalty = b.Amount()
	}
	return m
}

func (s Book) readSaid(period, k uint32) (ValidatorScores, bool) {
	b := s.Ballot(period, k)
	if b.Hash().IsZero() {
		return ValidatorScores{}, false
	}
	v := ValidatorScores{
		Seat: k, Key: b.Key(), Committed: true, Revealed: b.Revealed(), Stake: b.Stake(),
		Trust: b.Trust(), Agreement: b.Agreement(), Reward: b.Reward(),
	}
	given := s.Given(period, k)
	for i := range s.h().Count() {
		if u := given.Score(i); u != 0 {
			v.Scores = append(v.Scores, Score{Member: i, Value: Fixed(u)})
		}
	}
	return v, true
}

// LastScores returns the period that was settled last; false if none was.
func (s Book) LastScores() (Scores, bool) { return s.Scores(s.Settled()) }

// Emitted returns the tokens ever given for scores, and the tokens that penalties took back.
func (s Book) Emitted() (given, taken uint64) {
	return s.h().Emitted(), s.h().Penalties()
}
