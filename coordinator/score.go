package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
)

// Scores: what members did in a period, what validators said of it, and what came of that.

// ScoreStage is what validators can do about the period that is being scored.
type ScoreStage uint8

// The stages of scoring a period.
const (
	ScoreNone   ScoreStage = 0 // no period is being scored
	ScoreCommit ScoreStage = 1 // CommitScores
	ScoreReveal ScoreStage = 2 // RevealScores
)

// String returns the stage in words.
func (s ScoreStage) String() string {
	switch s {
	case ScoreCommit:
		return "committing"
	case ScoreReveal:
		return "revealing"
	}
	return "none"
}

// Fixed-point scores are kept with an offset, so that 0 stands for none.
const (
	scoreZero = 32768             // the score 0
	scoreMax  = scoreZero + 32767 // the score 1; the score -1 is 1
)

func offset(v int16) uint16 { return uint16(v) ^ scoreZero }

func fixed(u uint16) int16 {
	if u == 0 {
		return 0
	}
	return int16(u ^ scoreZero)
}

// Window returns the number of the window that runs: State.Round, and after the run's end so many more as have passed since,
// in which the last periods are scored.
func (s State) Window() uint32 { return s.Round() + s.tail() }

func (s State) tail() uint32 { return s.h().Tail() }

// tailMax bounds the windows that pass after a run's end.
const tailMax = 3 * ScoreWindowsMax

// settled returns the period that was settled last.
func (s State) settled() uint32 { return s.h().PeriodSettled() }

// period returns the period that a window is in: 1 for the first.
func (s State) period(window uint32) uint32 {
	n := s.h().ScoreWindows()
	if n == 0 {
		return 0
	}
	return (window + n - 1) / n
}

// Period returns the number of the period that runs, the first being 1; 0 if the run has no scores or has not begun.
func (s State) Period() uint32 { return s.period(s.Window()) }

// PeriodWindows returns the first and the last window of a period.
func (s State) PeriodWindows(period uint32) (first, last uint32) {
	n := s.h().ScoreWindows()
	return (period-1)*n + 1, period * n
}

// Scoring returns the period that is being scored now, which is the one before the current, and what validators can do about it.
func (s State) Scoring() (uint32, ScoreStage) {
	w := s.Window()
	now := s.period(w)
	if now < 2 || s.settled()+1 != now-1 || s.seats() == 0 || s.Phase() == Finished && !s.scoresDue() {
		return 0, ScoreNone
	}
	n := s.h().ScoreWindows()
	if (w-1)%n < n/2 {
		return now - 1, ScoreCommit
	}
	return now - 1, ScoreReveal
}

// scoresDue tells whether a finished run has periods left to settle.
func (s State) scoresDue() bool { return s.seats() > 0 && s.settled() < s.period(s.Round()) }

// tally returns the tally of a period, which may be another's.
func (s State) tallyOf(period uint32) record.Tally { return s.buffer().TallyOf(period) }

// tallyFor returns member i's part of the tally of the period that a round is in.
func (s State) tallyFor(i, round uint32) record.Work {
	p := s.period(round)
	t := s.tallyOf(p)
	t.SetPeriod(p)
	return t.Work(i)
}

// tallySequences notes the sequences of an accepted result of a round.
func (s State) tallySequences(i, round, sequences uint32) {
	if s.seats() > 0 {
		b := s.tallyFor(i, round)
		b.SetSequences(uint32(min(uint64(b.Sequences())+uint64(sequences), 1<<32-1)))
	}
}

// tallyMiss notes that a result of a round was not accepted.
func (s State) tallyMiss(i, round uint32) {
	if s.seats() > 0 {
		s.tallyFor(i, round).SetMissed(true)
	}
}

// clearTallies forgets what member i did in periods that are not settled.
func (s State) clearTallies(i uint32) {
	if s.l.Validators == 0 {
		return
	}
	for k := range uint32(record.TalliesKept) {
		t := s.tallyOf(k)
		if t.Period() > s.settled() {
			clear(t.Work(i))
		}
	}
}

// forgetScores forgets all that is known of the scores of place i, which is given to another.
func (s State) forgetScores(i uint32) {
	if s.l.Validators == 0 {
		return
	}
	for k := range uint32(record.TalliesKept) {
		clear(s.tallyOf(k).Work(i))
	}
	for p := range uint32(record.BallotsKept) {
		for k := range s.l.Validators {
			s.given(p, k).SetScore(i, 0)
		}
	}
}

// scorePending tells whether member i did something that may still be scored.
func (s State) scorePending(i uint32) bool {
	if s.l.Validators == 0 || s.h().Emission() == 0 {
		return false
	}
	for k := range uint32(record.TalliesKept) {
		t := s.tallyOf(k)
		if t.Period() > s.settled() && t.Work(i).Sequences() > 0 {
			return true
		}
	}
	return false
}

// periodScores returns the scores of a period, which may be another's.
func (s State) periodScores(period uint32) record.Period { return s.buffer().PeriodOf(period) }

// setPeriod marks the scores of a period as its own; those of an older one were cleared when the one before it was settled.
func (s State) setPeriod(period uint32) { s.periodScores(period).SetPeriod(period) }

// said returns what the validator in seat k says of a period, and given the scores it gives.
func (s State) said(period, k uint32) record.Ballot { return s.buffer().Ballot(period, k) }
func (s State) given(period, k uint32) record.Given { return s.buffer().Given(period, k) }

// clearSaid forgets what the validator in seat k said about a period.
func (s State) clearSaid(period, k uint32) {
	clear(s.said(period, k))
	clear(s.given(period, k))
}

// MemberScore is what became of one member's work of a period.
type MemberScore struct {
	Member    uint32
	Sequences uint32 // of its accepted results in the period
	Scored    bool   // validators of more than half of the weight scored it
	Score     int16  // what they agreed on, in units of 1/ScoreOne
	Weight    uint32 // its part of the members' emission, in units of 1/WeightOne
	Reward    uint64 // tokens it was given
	Penalty   uint64 // tokens that were taken from what was not ripe
}

// WeightOne is the whole of the members' emission.
const WeightOne = 1 << 30

// ValidatorScores is what one validator said about a period, and what it got for that.
type ValidatorScores struct {
	Seat      uint32
	Key       key.Public
	Committed bool
	Revealed  bool
	Scores    []Score // as revealed
	// The rest is known when the period is settled.
	Stake     uint64 // then
	Trust     uint8  // after it
	Agreement uint16 // how near it was to what was agreed on, over all members that were scored: 0 to AgreementOne
	Reward    uint64 // tokens it was given
}

// AgreementOne is the agreement of a validator that said of all members exactly what was agreed on.
const AgreementOne = 65535

// Scores is all about one period: who did how much, who said what, and who got what for it.
type Scores struct {
	Period      uint32
	First, Last uint32 // its windows
	Settled     bool
	Members     []MemberScore     // those with accepted results in the period, by their places
	Validators  []ValidatorScores // those who committed, by their seats
}

// Scores returns what is known of a period: the current one, the one that is being scored, or the one settled last.
func (s State) Scores(period uint32) (Scores, bool) {
	now := s.Period()
	if s.seats() == 0 || period == 0 || period > now || period+record.TalliesKept <= now || period < s.settled() {
		return Scores{}, false
	}
	p := Scores{Period: period, Settled: period <= s.settled()}
	p.First, p.Last = s.PeriodWindows(period)
	if t := s.tallyOf(period); t.Period() == period {
		for i := range s.Count() {
			if b := t.Work(i); b.Sequences() > 0 {
				p.Members = append(p.Members, readTally(b, i))
			}
		}
	}
	if s.periodScores(period).Period() != period {
		return p, true
	}
	for k := range s.seats() {
		if v, ok := s.readSaid(period, k); ok {
			p.Validators = append(p.Validators, v)
		}
	}
	return p, true
}

func readTally(b record.Work, i uint32) MemberScore {
	u := b.Score()
	m := MemberScore{Member: i, Sequences: b.Sequences(), Scored: u != 0, Score: fixed(u), Weight: b.Weight()}
	if u > scoreZero {
		m.Reward = b.Amount()
	} else {
		m.Penalty = b.Amount()
	}
	return m
}

func (s State) readSaid(period, k uint32) (ValidatorScores, bool) {
	b := s.said(period, k)
	if b.Hash().IsZero() {
		return ValidatorScores{}, false
	}
	v := ValidatorScores{
		Seat: k, Key: b.Key(), Committed: true, Revealed: b.Revealed(), Stake: b.Stake(),
		Trust: b.Trust(), Agreement: b.Agreement(), Reward: b.Reward(),
	}
	given := s.given(period, k)
	for i := range s.Count() {
		if u := given.Score(i); u != 0 {
			v.Scores = append(v.Scores, Score{Member: i, Value: fixed(u)})
		}
	}
	return v, true
}

// LastScores returns the period that was settled last; false if none was.
func (s State) LastScores() (Scores, bool) { return s.Scores(s.settled()) }

// Emitted returns the tokens that members and validators were ever given for scores, and those that penalties took back.
func (s State) Emitted() (given, taken uint64) {
	return s.h().Emitted(), s.h().Penalties()
}
