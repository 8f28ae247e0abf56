package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
)

// Package score implements validators and scores. This file connects them to a run.

func (s State) book() score.Book { return score.Book{Buffer: s.buffer()} }

func (env Env) score() score.Env {
	return score.Env{NowMs: env.NowMs, Height: env.Height, Sender: env.Sender, Value: env.Value}
}

// Window returns the number of the current window. That is State.Round, plus, after the end of the
// run, the windows that have passed since, in which the last periods are scored.
func (s State) Window() Round { return s.book().Window() }

// Period returns the number of the current period, starting with 1. It is 0 if the run has no
// scores or has not begun.
func (s State) Period() uint32 { return s.book().Period() }

// PeriodWindows returns the first and the last window of a period.
func (s State) PeriodWindows(period uint32) (first, last Round) {
	return s.book().PeriodWindows(period)
}

// Scoring returns the period being scored, which is the one before the current period, and what
// validators can do about it now.
func (s State) Scoring() (uint32, score.Stage) { return s.book().Scoring() }

// Scores returns what is known of a period: the current one, the one being scored, or the last
// settled one.
func (s State) Scores(period uint32) (score.Scores, bool) { return s.book().Scores(period) }

// LastScores returns the last settled period. It is false if there is none.
func (s State) LastScores() (score.Scores, bool) { return s.book().LastScores() }

// Emitted returns all tokens ever given to members and validators for scores, and all that
// penalties took back.
func (s State) Emitted() (given, taken uint64) { return s.book().Emitted() }

// Validators returns the validators that have seats, by seats.
func (s State) Validators() []score.Validator { return s.book().Validators() }

// Benched returns who waits for a seat of a validator, or is owed tokens and has none.
func (s State) Benched() []score.Validator { return s.book().Benched() }

// MayScore reports whether the validator with this key may score a period.
func (s State) MayScore(pub key.Public, period uint32) bool {
	k, ok := s.book().SeatOf(pub)
	return ok && s.book().Votes(k, period)
}

// Validator returns the validator with this key: in a seat, or else on a bench.
func (s State) Validator(pub key.Public) (score.Validator, bool) { return s.book().Validator(pub) }

func (m RegisterValidator) apply(s State, env Env) Error {
	return s.book().Register(env.score(), m.Payee)
}

func (RetireValidator) apply(s State, env Env) Error {
	return s.book().Retire(env.score())
}

func (m CommitScores) apply(s State, env Env) Error {
	return s.book().Commit(env.score(), m.Period, m.Hash)
}

func (m RevealScores) apply(s State, env Env) Error {
	return s.book().Reveal(env.score(), m.Period, m.Scores, ScoresHash(s.ID(), env.Sender, m))
}
