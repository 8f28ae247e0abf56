package adversary

import (
	"bytes"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Aggregators returns the kinds of runs of slices that train honestly, and do not sum their slices
// as they should. Like the [Misleaders] they leave no proof.
func Aggregators() []Kind {
	return []Kind{
		{Name: "miscounter", Tries: "as an aggregator, names a slice with a sign turned, the same as all its kind, and serves it",
			make: func(m *member) (hooks, error) { return hooks{aggregates: m.miscount}, nil }},
		{Name: "shirker", Tries: "as an aggregator, neither shows what it holds nor sums its slice",
			make: func(*member) (hooks, error) {
				return hooks{aggregates: func(question byte, _ key.Public, answer []byte) []byte {
					if question == questionRange {
						return answer
					}
					return nil
				}}, nil
			}},
		{Name: "disclaimer", Tries: "as an aggregator, shows that it holds ranges of its kind's results only",
			make: func(m *member) (hooks, error) { return hooks{aggregates: m.disclaim}, nil }},
		{Name: "rationer", Tries: "serves ranges of payloads to half of the members only, and says that it holds all of its kind's",
			make: func(m *member) (hooks, error) { return hooks{aggregates: m.ration}, nil }},
	}
}

// miscount names another slice than was summed.
func (m *member) miscount(question byte, _ key.Public, answer []byte) []byte {
	if question != questionSlice {
		return answer
	}
	r := wire.NewReader(answer)
	root, size := r.Hash(), r.U64()
	if r.Done() != wire.OK {
		return answer
	}
	var slice []byte
	for i := uint32(0); uint64(len(slice)) < size; i++ {
		chunk, ok := m.inner.Chunk(root, i)
		if !ok {
			return answer
		}
		slice = append(slice, chunk...)
	}
	wrong := bytes.Clone(slice)
	wrong[0] ^= 1
	other := merkle.BlobRoot(wrong)
	m.second[other] = wrong
	return wire.AppendU64(wire.AppendHash(nil, other), size)
}

// disclaim shows that ranges of others' results are not held.
func (m *member) disclaim(question byte, _ key.Public, answer []byte) []byte {
	if question != questionHeld || !m.hasState {
		return answer
	}
	tags := bytes.Clone(answer)
	for i := range tags {
		if c := coordinator.Member(i); c < m.state.Count() && !m.ours(m.state.Key(c)) {
			tags[i] = 0
		}
	}
	return tags
}

// ration refuses ranges to every second member.
func (m *member) ration(question byte, from key.Public, answer []byte) []byte {
	if i, ok := m.state.Find(from); question == questionRange && m.hasState && ok && i%2 == 0 && !m.ours(from) {
		return nil
	}
	return answer
}
