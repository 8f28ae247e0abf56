package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/dispute"
)

// Package dispute implements checks, disputes and convictions. This file connects them to a run.

func (s State) cases() dispute.Cases { return dispute.Cases{Buffer: s.buffer()} }

// dispute returns the part of env that package dispute needs. m is nil if time alone acts.
func (env Env) dispute(m Message) dispute.Env {
	e := dispute.Env{NowMs: env.NowMs, Seed: env.Seed, Sender: env.Sender, Referee: env.Referee}
	if m != nil {
		e.Proof = MessageHash(m)
	}
	return e
}

// Checks returns the checks that are open or in dispute.
func (s State) Checks() []dispute.Check { return s.cases().OpenChecks() }

// Disputes returns the open disputes, oldest first.
func (s State) Disputes() []dispute.Dispute { return s.cases().OpenDisputes() }

// Dispute returns the dispute with the number id, if it is open.
func (s State) Dispute(id uint32) (dispute.Dispute, bool) { return s.cases().ByID(id) }

// DisputesTotal returns the number of disputes so far, which is the number of the last one.
func (s State) DisputesTotal() uint32 { return s.h().Disputes() }

// ChecksDrawn returns how many checks were drawn, and how many of them passed.
func (s State) ChecksDrawn() (drawn, passed uint32) { return s.h().ChecksDrawn(), s.h().ChecksPassed() }

// Convictions returns the last convictions, up to 64, the newest last.
func (s State) Convictions() []dispute.Conviction { return s.cases().LastConvictions() }

// ConvictionsTotal returns the number of convictions so far, which is the number of the last one.
func (s State) ConvictionsTotal() uint32 { return s.h().Convictions() }

func (m Pass) apply(s State, env Env) Error {
	return s.cases().Pass(env.dispute(m), m.Round, m.Member, m.Commitment, m.Gradient)
}

func (m Accuse) apply(s State, env Env) Error {
	return s.cases().Accuse(env.dispute(m), m.Round, m.Member, m.Commitment, m.Trace)
}

func (m Unserved) apply(s State, env Env) Error {
	return s.cases().Unserved(env.dispute(m), m.Round, m.Member)
}

func (m TieBreak) apply(s State, env Env) Error {
	return s.cases().TieBreak(env.dispute(m), m.Dispute, m.Vote, m.Trace)
}

func (m Defend) apply(s State, env Env) Error {
	return s.cases().Defend(env.dispute(m), m.Dispute, m.Trace, m.Proof)
}

func (m Reveal) apply(s State, env Env) Error {
	return s.cases().Reveal(env.dispute(m), m.Dispute, m.Nodes)
}

func (m Evidence) apply(s State, env Env) Error {
	return s.cases().Evidence(env.dispute(m), m.Dispute, m.Bytes)
}

func (m Concede) apply(s State, env Env) Error {
	return s.cases().Concede(env.dispute(m), m.Dispute)
}

func (m Equivocation) apply(s State, env Env) Error {
	return s.cases().Equivocation(env.dispute(m), m.A, m.B)
}
