package table

import (
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// History has the hashes that parameters had at the start of the last rounds. The coordinator
// agrees on the hash of a round when that round ends, so the one in question is at most three
// rounds old.
type History [8]version

type version struct {
	round coordinator.Round
	hash  wire.Hash
}

// Set notes the hash of a round.
func (h *History) Set(round coordinator.Round, hash wire.Hash) {
	h[round%coordinator.Round(len(h))] = version{round, hash}
}

// At returns the hash of a round, if it was noted not long ago.
func (h *History) At(round coordinator.Round) (hash wire.Hash, ok bool) {
	v := h[round%coordinator.Round(len(h))]
	return v.hash, v.round == round && !v.hash.IsZero()
}
