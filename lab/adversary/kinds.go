package adversary

import (
	"slices"
	"strings"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Kind is a way to cheat.
type Kind struct {
	Name string
	// Tries describes, in a sentence, what it does and hopes for.
	Tries string
	// Gang is the number of identities it takes, or 0 if each acts alone.
	Gang int
	// Offences lists what it is convicted of, depending on how it defends itself. It is empty if it
	// leaves no proof.
	Offences []dispute.Offence
	// Checked reports whether its results are wrong, so that recomputing one of them exposes it.
	Checked bool
	// Sometimes reports whether it cheats or is silent in some rounds or towards some peers only.
	Sometimes bool

	make func(*member) (hooks, error)
}

// Convicts reports whether this kind is expected to be convicted of an offence.
func (k Kind) Convicts(o dispute.Offence) bool { return slices.Contains(k.Offences, o) }

// Provable reports whether the kind leaves a proof that costs its whole stake. Others pay a fee for
// being useless.
func (k Kind) Provable() bool { return len(k.Offences) > 0 && !k.Offences[0].Lesser() }

// Signed reports whether what the kind signs convicts it, in runs without checks of results as in
// others.
func (k Kind) Signed() bool { return slices.Equal(k.Offences, []dispute.Offence{dispute.Equivocated}) }

// Find returns the named kind among those of runs that exchange between peers. The name "a+b" is
// that of a member that is an a for two rounds and a b for the next two, in turn; neither may need
// a gang or be among the [Misleaders] and [Aggregators].
func Find(name string) (Kind, bool) {
	for _, k := range append(Misleaders(), Aggregators()...) {
		if k.Name == name {
			return k, true
		}
	}
	return find(Kinds(), name)
}

// FindMiner returns the named kind among those of runs that exchange by buckets.
func FindMiner(name string) (Kind, bool) { return find(Miners(), name) }

func find(kinds []Kind, name string) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return findSwitching(kinds, name)
	}
	return kinds[i], true
}

// Names returns the names of all kinds of runs that exchange between peers.
func Names() string { return names(Kinds()) }

// MinerNames returns the names of all kinds of runs that exchange by buckets.
func MinerNames() string { return names(Miners()) }

func names(kinds []Kind) string {
	var list []string
	for _, k := range kinds {
		list = append(list, k.Name)
	}
	return strings.Join(list, ", ")
}

// Kinds returns all kinds of runs that exchange between peers, besides the [Misleaders] and the
// [Aggregators].
func Kinds() []Kind {
	return slices.Concat(trainers(), messengers(), officials(), sly())
}

// wrongResult lists the offences of members that commit to what their share does not give: the
// referee's judgment, or not defending it.
func wrongResult() []dispute.Offence {
	return []dispute.Offence{dispute.WrongResult, dispute.Silence}
}

// trainers cheat in what they commit to.
func trainers() []Kind {
	kinds := []Kind{
		{Name: "free-rider", Tries: "sends the payload of a random gradient, to be paid without working", make: wrong(func(m *member) (step, error) {
			return m.randomStep(func([]batch.Span) wire.Hash { return m.secretly() }), nil
		})},
		{Name: "free-rider-stale", Tries: "works once and sends that result in every round", make: wrong(func(m *member) (step, error) {
			return m.staleStep(), nil
		})},
		{Name: "free-rider-none", Tries: "sends a payload that changes nothing", make: wrong(func(m *member) (step, error) {
			return m.emptyStep, nil
		})},
		{Name: "copycat", Tries: "commits to the payload of another member of the same round as its own", make: func(m *member) (hooks, error) {
			return hooks{own: m.emptyStep, commit: m.holdBack, see: m.copyFrom(key.Public{}), lies: aboutItself}, nil
		}},
		{Name: "wrong-data", Tries: "trains on the same sequences in every round instead of its share", make: wrong(func(m *member) (step, error) {
			return m.favouriteStep, nil
		})},
		{Name: "poison", Tries: "trains on made-up data that teaches the model to repeat one token", make: wrong((*member).poisonStep)},
		{Name: "scale", Tries: "multiplies its gradient by a thousand, past the clipping, to outweigh the others", make: wrong(func(m *member) (step, error) {
			return m.gradientStep(scale), nil
		})},
		{Name: "sign-flip", Tries: "negates its gradient, to undo what the others learn", make: wrong(func(m *member) (step, error) {
			return m.gradientStep(flip), nil
		})},
		{Name: "bad-hardware", Tries: "is not malicious: its memory flips one bit of each optimizer state per step, its own and those it verifies",
			make: func(m *member) (hooks, error) { return hooks{own: m.flipStep, others: m.flipStep}, nil }},
		{Name: "sybil", Tries: "is several members at once that share one computation", Gang: 2, make: func(m *member) (hooks, error) {
			if m.self == m.o.Gang[0] {
				return hooks{}, nil // the one that does the work
			}
			return hooks{own: m.emptyStep, commit: m.holdBack, see: m.copyFrom(m.o.Gang[0]), lies: aboutItself}, nil
		}},
	}
	for i := range kinds {
		kinds[i].Offences, kinds[i].Checked = wrongResult(), true
	}
	return kinds
}

// wrong returns a kind that computes its own shares differently, and fights when accused.
func wrong(s func(*member) (step, error)) func(*member) (hooks, error) {
	return func(m *member) (hooks, error) {
		own, err := s(m)
		return hooks{own: own, lies: aboutItself}, err
	}
}

// messengers compute correctly and cheat in how they publish it.
func messengers() []Kind {
	return []Kind{
		{Name: "withhold", Tries: "serves its payloads but withholds the optimizer states it committed to, so that nobody can recompute its work",
			Offences: []dispute.Offence{dispute.NotServing}, make: func(m *member) (hooks, error) {
				return hooks{commit: m.conceal, hides: func(root wire.Hash) bool { return m.secret[root] }}, nil
			}},
		{Name: "equivocate", Tries: "signs two commitments to one share, to prevent agreement",
			Offences: []dispute.Offence{dispute.Equivocated}, make: func(m *member) (hooks, error) {
				return hooks{commit: m.twice}, nil
			}},
		{Name: "late", Tries: "publishes its commitments only after the round, and still expects pay",
			Offences: []dispute.Offence{dispute.Absence}, make: func(m *member) (hooks, error) {
				return hooks{commit: m.holdBack, see: m.afterwards}, nil
			}},
	}
}
