package adversary

import (
	"strings"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Kind is a way to cheat.
type Kind struct {
	Name string
	// Tries says in a sentence what it does, and what it hopes for.
	Tries string
	// Gang is how many identities it takes, 0 if each acts alone.
	Gang int

	make func(*member) (hooks, error)
}

// Find returns the kind with a name.
func Find(name string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// Names lists the names of all kinds.
func Names() string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
	}
	return strings.Join(names, ", ")
}

// Kinds returns all of them.
func Kinds() []Kind {
	return trainers()
}

// trainers cheat in what they commit to.
func trainers() []Kind {
	plain := func(s func(m *member) step) func(*member) (hooks, error) {
		return func(m *member) (hooks, error) { return hooks{own: s(m)}, nil }
	}
	bent := func(bend func([]float32, float32) float32) func(*member) (hooks, error) {
		return func(m *member) (hooks, error) {
			s, err := m.bentStep(bend)
			return hooks{own: s}, err
		}
	}
	return []Kind{
		{Name: "free-rider", Tries: "sends the code of a random gradient, to be paid without working",
			make: plain(func(m *member) step { return m.randomStep(func([]batch.Span) wire.Hash { return m.secretly() }) })},
		{Name: "free-rider-stale", Tries: "works once and sends that result in every round",
			make: plain((*member).staleStep)},
		{Name: "free-rider-none", Tries: "sends the code that moves nothing",
			make: plain(func(m *member) step { return m.emptyStep })},
		{Name: "copycat", Tries: "commits to the payload of another member of the same round as its own",
			make: func(m *member) (hooks, error) {
				return hooks{own: m.emptyStep, commit: m.holdBack, see: m.copyFrom(func(k key.Public) bool { return k != m.self })}, nil
			}},
		{Name: "wrong-data", Tries: "trains on the same sequences in every round in place of those it was given",
			make: plain(func(m *member) step { return m.favouriteStep })},
		{Name: "poison", Tries: "trains on data of its own making, which teaches the model to repeat one token",
			make: func(m *member) (hooks, error) {
				s, err := m.poisonStep()
				return hooks{own: s}, err
			}},
		{Name: "scale", Tries: "makes its gradient a thousand times as large, past the clipping, to outweigh the others", make: bent(scale)},
		{Name: "sign-flip", Tries: "turns its gradient around, to undo what the others learn", make: bent(flip)},
		{Name: "bad-hardware", Tries: "means no harm: its memory flips one bit of its optimizer state in every step, its own and those it verifies",
			make: func(m *member) (hooks, error) { return hooks{own: m.flipStep, others: m.flipStep}, nil }},
		{Name: "withhold", Tries: "serves its payloads, and keeps back the optimizer states it committed to, so that nobody can recompute its work",
			make: func(m *member) (hooks, error) {
				return hooks{commit: m.conceal, hides: func(root wire.Hash) bool { return m.secret[root] }}, nil
			}},
		{Name: "equivocate", Tries: "signs two commitments to one share, so that others may not agree on one",
			make: func(m *member) (hooks, error) { return hooks{commit: m.twice}, nil }},
		{Name: "late", Tries: "publishes its commitments only when the round is over, and asks to be paid all the same",
			make: func(m *member) (hooks, error) { return hooks{commit: m.holdBack, see: m.afterwards}, nil }},
		{Name: "sybil", Tries: "is several members at once that share one computation", Gang: 2,
			make: func(m *member) (hooks, error) {
				if m.self == m.o.Gang[0] {
					return hooks{}, nil
				}
				return hooks{own: m.emptyStep, commit: m.holdBack, see: m.copyFrom(func(k key.Public) bool { return k == m.o.Gang[0] })}, nil
			}},
	}
}
