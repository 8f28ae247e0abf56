package adversary

import (
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Misleaders returns the kinds of runs of followers that work honestly and lie to followers. They
// leave no proof: what they cost is the followers' time.
func Misleaders() []Kind {
	return []Kind{
		{Name: "misleader", Tries: "as a witness, names to followers an update with all signs turned, the same as all its kind, and serves it",
			make: func(m *member) (hooks, error) { return hooks{update: m.turned}, nil }},
		{Name: "mute", Tries: "as a witness, names the right update to followers and serves none",
			make: func(m *member) (hooks, error) {
				return hooks{
					update: func(update []byte) []byte { m.secret[merkle.BlobRoot(update)] = true; return update },
					hides:  func(root wire.Hash) bool { return m.secret[root] },
				}, nil
			}},
		{Name: "boaster", Tries: "as a witness, names to followers an update as long as an update can be, and serves zeros",
			make: func(m *member) (hooks, error) {
				return hooks{update: func([]byte) []byte { return make([]byte, m.codec.(codec.Followable).UpdateMax()) }}, nil
			}},
	}
}

// turned returns an update whose signs are all turned. It is well formed only if every weight steps
// and blocks end with bytes, or else the padding and the signs of weights that only decay are 0.
func (m *member) turned(update []byte) []byte {
	c := m.codec.(codec.Followable)
	wrong := append([]byte(nil), update...)
	for i := codec.HeaderLen; i < c.UpdateLen(); i++ {
		wrong[i] ^= 0xff
		if c.CheckUpdate(wrong) != nil {
			wrong[i] ^= 0xff
		}
	}
	return wrong
}

// answerUpdate answers a question for an update as the kind does. answer is the honest one.
func (h handler) answerUpdate(answer []byte) []byte {
	r := wire.NewReader(answer)
	root, size := r.Hash(), r.U64()
	if r.Done() != wire.OK {
		return answer
	}
	var update []byte
	for i := uint32(0); uint64(len(update)) < size; i++ {
		chunk, ok := h.Handler.Chunk(root, i)
		if !ok {
			return answer
		}
		update = append(update, chunk...)
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	named := h.m.hooks.update(update)
	other := merkle.BlobRoot(named)
	if other != root {
		h.m.second[other] = named
	}
	return wire.AppendU64(wire.AppendHash(nil, other), uint64(len(named)))
}
