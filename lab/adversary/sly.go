package adversary

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// sly kinds cheat in some rounds only, or tell different peers different things, so that what
// convicts the others does not reach them.
func sly() []Kind {
	return []Kind{
		{Name: "blinder", Tries: "a gang that names wrong parameters in every second round in which it can prevent agreement, and does not work in these", Gang: 2,
			Sometimes: true, Offences: append([]dispute.Offence{dispute.Contradiction, dispute.Absence}, wrongResult()...),
			make: func(m *member) (hooks, error) {
				return hooks{own: m.inTurn(m.blinds, m.randomStep(m.sharedSecret)), say: m.nameBlindly, lies: aboutItself}, nil
			}},
		{Name: "dodger", Tries: "does not work, hides what would prove it, and works after two strikes until they are forgiven",
			Sometimes: true, Offences: append([]dispute.Offence{dispute.Absence, dispute.NotServing}, wrongResult()...),
			make: func(m *member) (hooks, error) {
				return hooks{own: m.inTurn(m.dodges, m.emptyStep), commit: m.concealDodged, lies: aboutItself,
					hides: func(root wire.Hash) bool { return m.secret[root] }}, nil
			}},
		{Name: "halves", Tries: "tells half of its peers of one payload and half of another, by answers alone",
			Sometimes: true, Offences: append([]dispute.Offence{dispute.Equivocated}, wrongResult()...), make: func(m *member) (hooks, error) {
				return hooks{commit: m.halves}, nil
			}},
		{Name: "stutter", Tries: "is silent in three rounds of four, and works in the fourth, to slow the others",
			Sometimes: true, Offences: []dispute.Offence{dispute.Absence}, make: func(m *member) (hooks, error) {
				return hooks{commit: func(s dispute.Signed) []dispute.Signed {
					if s.Commitment.Round%4 != 0 {
						return nil
					}
					return []dispute.Signed{s}
				}}, nil
			}},
		{Name: "denier", Tries: "a gang that does not work, serves nobody what would prove it, and says as verifier and tie-breaker that its fellows serve and that others do not", Gang: 2,
			Sometimes: true, Offences: append([]dispute.Offence{dispute.Absence, dispute.NotServing}, wrongResult()...),
			make: func(m *member) (hooks, error) {
				return hooks{own: m.randomStep(m.sharedSecret), commit: m.conceal, say: m.deny, lies: aboutItself,
					hides: func(root wire.Hash) bool { return m.secret[root] }}, nil
			}},
		{Name: "shunner", Tries: "a gang that works, and as witness denies a quarter of the others' results where that keeps them out of the model, to have their authors charged", Gang: 2,
			Sometimes: true, Offences: []dispute.Offence{dispute.Absence}, make: func(m *member) (hooks, error) {
				return hooks{say: m.shun}, nil
			}},
		{Name: "dawdler", Tries: "gives its verdicts at the last moment, so that its checks take the places of others",
			Sometimes: true, Offences: []dispute.Offence{dispute.Absence}, make: func(m *member) (hooks, error) {
				return hooks{wait: m.dawdle}, nil
			}},
	}
}

// dawdle returns how long a verdict is kept back: until an eighth of the time for it is left.
func (m *member) dawdle(said coordinator.Message) time.Duration {
	pass, ok := said.(coordinator.Pass)
	if !ok {
		return 0
	}
	for _, c := range m.state.Checks() {
		if c.Round == pass.Round && c.Member == pass.Member {
			last := time.UnixMilli(int64(c.DeadlineMs - m.state.Config().VerifyMs/8))
			return last.Sub(m.loop.Now())
		}
	}
	return 0
}

// shun denies the results of the first quarter of the members, without fellows, in the rounds in
// which the other witnesses are not a quorum. With half of the seats the gang would be the
// majority.
func (m *member) shun(said coordinator.Message) (coordinator.Message, bool) {
	report, ok := said.(coordinator.Witness)
	if !ok {
		return said, true
	}
	r, ok := m.state.At(report.Round)
	if !ok {
		return said, true
	}
	if others := m.others(r); others >= r.Quorum() || 2*others <= uint32(len(r.Witnesses())) {
		return said, true
	}
	for i := range min(m.state.Count()/4, coordinator.Member(8*len(report.Held))) {
		if !m.fellow(i) {
			report.Complete = false
			report.Held[i>>3] &^= 1 << (i & 7)
		}
	}
	for n := len(report.Held); n > 0 && report.Held[n-1] == 0; n-- {
		report.Held = report.Held[:n-1]
	}
	return report, true
}

// others returns how many of a round's witnesses are not of the gang.
func (m *member) others(r coordinator.RoundState) uint32 {
	n := uint32(0)
	for _, i := range r.Witnesses() {
		if !m.fellow(i) {
			n++
		}
	}
	return n
}

// deny says of fellows that they serve and are right, and of others that they serve nothing.
func (m *member) deny(said coordinator.Message) (coordinator.Message, bool) {
	switch said := said.(type) {
	case coordinator.Accuse:
		return m.denyOf(said.Round, said.Member, said), true
	case coordinator.Pass:
		return m.denyOf(said.Round, said.Member, said), true
	case coordinator.Unserved:
		return m.denyOf(said.Round, said.Member, said), true
	case coordinator.TieBreak:
		d, ok := m.state.Dispute(said.Dispute)
		switch {
		case ok && m.fellow(d.Accused):
			return coordinator.TieBreak{Dispute: said.Dispute, Vote: dispute.VoteRight, Trace: m.noise()}, true
		case ok && d.Unserved:
			return coordinator.TieBreak{Dispute: said.Dispute, Vote: dispute.VoteUnserved}, true
		}
	}
	return said, true
}

// denyOf is a denier's verdict on a result, in place of an honest one.
func (m *member) denyOf(round coordinator.Round, author coordinator.Member, honest coordinator.Message) coordinator.Message {
	if !m.fellow(author) {
		return coordinator.Unserved{Round: round, Member: author}
	}
	if s, ok := m.seen[round][author]; ok {
		return coordinator.Pass{Round: round, Member: author, Commitment: *s, Gradient: m.secretOf(s.Commitment.Share)}
	}
	return honest
}

// inTurn cheats in the rounds for which when is true, and works in the others. It remembers in
// which rounds it cheated.
func (m *member) inTurn(when func(coordinator.Round) bool, cheat step) step {
	return func(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
		m.mu.Lock()
		_, round, ok := m.trainerOf(spans)
		does := ok && when(round)
		if does {
			m.cheated = append(m.cheated[max(0, len(m.cheated)-keepRounds):], round)
		}
		m.mu.Unlock()
		if does {
			return cheat(ctx, params, state, spans, step)
		}
		return m.honest.Step(ctx, params, state, spans, step)
	}
}

// blinds reports whether the gang prevents agreement on the parameters of a round: in even rounds
// in which the other witnesses are not a quorum.
func (m *member) blinds(round coordinator.Round) bool {
	r, ok := m.state.At(round)
	return ok && r.Trains() && round%2 == 0 && m.others(r) < r.Quorum()
}

// nameBlindly reports parameters that nobody holds in the rounds that the gang blinds.
func (m *member) nameBlindly(said coordinator.Message) (coordinator.Message, bool) {
	report, ok := said.(coordinator.Witness)
	if !ok || !m.blinds(report.Round) {
		return said, true
	}
	report = m.holdFellows(report)
	report.Params = m.noise()
	return report, true
}

// dodges reports whether a dodger cheats: while one more strike does not eject it.
func (m *member) dodges(coordinator.Round) bool {
	i, ok := m.index()
	return ok && m.state.Member(i).Strikes < 2
}

// concealDodged keeps from peers the optimizer states of rounds in which the member cheated.
func (m *member) concealDodged(s dispute.Signed) []dispute.Signed {
	if !slices.Contains(m.cheated, s.Commitment.Round) {
		return []dispute.Signed{s}
	}
	return m.conceal(s)
}

// halves publishes nothing. It answers each peer that asks with one of two commitments, to
// different payloads, and serves both.
func (m *member) halves(s dispute.Signed) []dispute.Signed {
	switch {
	case m.asker == nil:
		return nil
	case m.asker[0]%2 == 0:
		return []dispute.Signed{s}
	}
	round := s.Commitment.Round
	other, ok := m.instead[round]
	if !ok {
		grad := make([]float32, m.honest.ParamsLen())
		for i := range grad {
			grad[i] = float32(i%7) - 3
		}
		payload, err := m.codec.Encode(nil, make([]float32, m.honest.StateLen()), grad, m.o.Run.Schedule.LR(uint32(round)))
		if err != nil {
			return []dispute.Signed{s}
		}
		c := s.Commitment
		c.Payload, c.PayloadBytes = merkle.BlobRoot(payload), uint32(len(payload))
		other = m.sign(c)
		m.instead[round], m.second[c.Payload] = other, payload
	}
	return []dispute.Signed{other}
}

// switchSeparator joins the names of two kinds: a member that is one and the other in turn.
const switchSeparator = "+"

// switchRounds is the number of rounds after which such a member changes.
const switchRounds = 2

// switching returns the kind that is first a and then b, in turn.
func switching(a, b Kind) Kind {
	k := Kind{
		Name: a.Name + switchSeparator + b.Name, Tries: fmt.Sprintf("%s; and, in turn, %s", a.Tries, b.Tries), Gang: max(a.Gang, b.Gang), Sometimes: true,
		Offences: slices.Concat([]dispute.Offence{dispute.Absence, dispute.Silence}, a.Offences, b.Offences),
	}
	if k.Convicts(dispute.FalsePass) {
		// It may accuse while it is honest, and argue with a made-up trace.
		k.Offences = append(k.Offences, dispute.FalseAccusation)
	}
	k.make = func(m *member) (hooks, error) {
		first, err := a.make(m)
		if err != nil {
			return hooks{}, err
		}
		second, err := b.make(m)
		return m.switched(first, second), err
	}
	return k
}

// switched returns hooks that are those of two kinds in turn.
func (m *member) switched(a, b hooks) hooks {
	of := func(round coordinator.Round) *hooks {
		if round/switchRounds%2 == 0 {
			return &a
		}
		return &b
	}
	orHonest := func(s step) step {
		if s == nil {
			return m.honest.Step
		}
		return s
	}
	return hooks{
		own: func(ctx context.Context, params, state engine.Vector, spans []batch.Span, n uint32) (engine.Result, error) {
			m.mu.Lock()
			_, round, _ := m.trainerOf(spans)
			m.mu.Unlock()
			return orHonest(of(round).own)(ctx, params, state, spans, n)
		},
		others: func(ctx context.Context, params, state engine.Vector, spans []batch.Span, n uint32) (engine.Result, error) {
			m.mu.Lock()
			round := m.now()
			m.mu.Unlock()
			return orHonest(of(round).others)(ctx, params, state, spans, n)
		},
		say: func(said coordinator.Message) (coordinator.Message, bool) {
			if say := of(m.now()).say; say != nil {
				return say(said)
			}
			return said, true
		},
		wait: func(said coordinator.Message) time.Duration { return of(m.now()).waits(said) },
		commit: func(s dispute.Signed) []dispute.Signed {
			if commit := of(s.Commitment.Round).commit; commit != nil {
				return commit(s)
			}
			return []dispute.Signed{s}
		},
		see: func() (out []dispute.Signed) { // each acts only on what it held back itself
			all, left := m.pending, map[coordinator.Round]dispute.Signed{}
			for _, h := range []*hooks{&a, &b} {
				m.pending = map[coordinator.Round]dispute.Signed{}
				for round, s := range all {
					if of(round) == h {
						m.pending[round] = s
					}
				}
				if h.see != nil {
					out = append(out, h.see()...)
				}
				maps.Copy(left, m.pending)
			}
			m.pending = left
			return out
		},
		lies:  func(own bool) bool { return a.lies != nil && a.lies(own) || b.lies != nil && b.lies(own) },
		hides: func(root wire.Hash) bool { return m.secret[root] },
		check: func(payload []byte) {
			for _, h := range []hooks{a, b} {
				if h.check != nil {
					h.check(payload)
				}
			}
		},
	}
}

// now returns the current round, or 0.
func (m *member) now() coordinator.Round {
	if !m.hasState {
		return 0
	}
	return m.state.Round()
}

// findSwitching returns the kind of a name that joins two, neither of which needs a gang.
func findSwitching(kinds []Kind, name string) (Kind, bool) {
	first, second, ok := strings.Cut(name, switchSeparator)
	if !ok {
		return Kind{}, false
	}
	a, okA := find(kinds, first)
	b, okB := find(kinds, second)
	if !okA || !okB || a.Gang+b.Gang > 0 {
		return Kind{}, false
	}
	return switching(a, b), true
}
