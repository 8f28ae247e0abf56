package adversary

import (
	"context"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/wire"
)

// officials cheat as verifiers, tie-breakers or witnesses. Some also train dishonestly.
func officials() []Kind {
	return []Kind{
		{Name: "lazy-verifier", Tries: "passes every result without recomputing it",
			Offences: []dispute.Offence{dispute.FalsePass},
			make: func(m *member) (hooks, error) {
				return hooks{others: m.nothing, lies: aboutOthers, say: m.passEverything}, nil
			}},
		{Name: "false-accuser", Tries: "accuses everyone it verifies, with a forged trace, for the reward",
			Offences: []dispute.Offence{dispute.FalseAccusation, dispute.Silence},
			make: func(m *member) (hooks, error) {
				return hooks{others: m.nothing, lies: aboutOthers}, nil
			}},
		{Name: "lying-witness", Tries: "as a witness, reports parameters that it does not hold, to prevent agreement",
			Offences: []dispute.Offence{dispute.Contradiction, dispute.Absence},
			make:     func(m *member) (hooks, error) { return hooks{say: m.nameOthers}, nil }},
		{Name: "colluder", Tries: "sends random gradients, and protects its accomplices as verifier, tie-breaker and witness", Gang: 2,
			Offences: wrongResult(), Checked: true,
			make: func(m *member) (hooks, error) {
				return hooks{own: m.randomStep(m.sharedSecret), say: m.coverUp, lies: aboutItself}, nil
			}},
	}
}

// aboutItself and aboutOthers are values of hooks.lies.
func aboutItself(own bool) bool { return own }
func aboutOthers(own bool) bool { return !own }

// nothing returns the result of a verifier that does not compute: the same for the same share, and
// never the committed one.
func (m *member) nothing(ctx context.Context, _, _ engine.Vector, spans []batch.Span, _ uint32) (engine.Result, error) {
	share := batch.Hash(spans)
	return engine.Result{Payload: []byte{}, Gradient: wire.Sum("entrain/adversary/nothing", m.o.Seed[:], share[:])}, ctx.Err()
}

// passEverything passes every result it is drawn to check, and votes for the accused. Its proof of
// having computed is made up.
func (m *member) passEverything(said coordinator.Message) (coordinator.Message, bool) {
	switch said := said.(type) {
	case coordinator.Accuse:
		return coordinator.Pass{Round: said.Round, Member: said.Member, Commitment: said.Commitment, Gradient: m.noise()}, true
	case coordinator.TieBreak:
		return coordinator.TieBreak{Dispute: said.Dispute, Vote: dispute.VoteRight, Trace: m.noise()}, true
	}
	return said, true
}

// nameOthers reports parameters that the member does not hold, and that differ from its fellow
// liars'.
func (m *member) nameOthers(said coordinator.Message) (coordinator.Message, bool) {
	report, ok := said.(coordinator.Witness)
	if !ok {
		return said, true
	}
	report.Params = m.noise()
	return report, true
}

// sharedSecret returns what the gang uses as the root of a gradient that nobody computed: each of
// them can open the others' work.
func (m *member) sharedSecret(spans []batch.Span) wire.Hash { return m.secretOf(batch.Hash(spans)) }

func (m *member) secretOf(share wire.Hash) wire.Hash {
	return wire.Sum("entrain/adversary/gang", m.o.Secret[:], share[:])
}

// coverUp passes fellows with the secret that opens their work, votes for them, and claims to hold
// whatever they sent. About others it says what its node found.
func (m *member) coverUp(said coordinator.Message) (coordinator.Message, bool) {
	switch said := said.(type) {
	case coordinator.Accuse:
		if m.fellow(said.Member) {
			return coordinator.Pass{Round: said.Round, Member: said.Member, Commitment: said.Commitment,
				Gradient: m.secretOf(said.Commitment.Commitment.Share)}, true
		}
	case coordinator.TieBreak:
		if d, ok := m.state.Dispute(said.Dispute); ok && m.fellow(d.Accused) {
			return coordinator.TieBreak{Dispute: said.Dispute, Vote: dispute.VoteRight, Trace: m.noise()}, true
		}
	case coordinator.Witness:
		return m.holdFellows(said), true
	}
	return said, true
}

// fellow reports whether a member belongs to the gang.
func (m *member) fellow(i coordinator.Member) bool {
	return i < m.state.Count() && m.ours(m.state.Key(i))
}

// holdFellows claims to hold the results that were due from all fellows.
func (m *member) holdFellows(report coordinator.Witness) coordinator.Witness {
	r, ok := m.state.At(report.Round)
	if !ok {
		return report
	}
	attested, ok := m.state.At(r.Attests())
	if !ok {
		return report
	}
	for i := range m.state.Count() {
		if m.fellow(i) && attested.Expected(i) {
			report.Held = coordinator.SetHeld(report.Held, i)
		}
	}
	return report
}
