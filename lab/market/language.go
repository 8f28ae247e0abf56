package market

import (
	"context"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// language is text in which each word is followed by one of four, and the word before decides
// which of them are likely. Its sequences are numbered from a first one.
type language struct{ from uint64 }

// followers is how many words can follow one.
const followers = 4

// Read is part of engine.Source.
func (l language) Read(i uint64, dst []uint32) error {
	random := prng.New(wire.Sum("entrain/market-language", wire.AppendU64(nil, l.from+i)), "sequence")
	vocab := uint64(Model.Vocab)
	before, word := random.Uint64n(vocab), random.Uint64n(vocab)
	for k := range dst {
		dst[k] = uint32(word)
		which := uint64(0)
		for left := random.Uint64n(16); left >= likely(which); which++ {
			left -= likely(which)
		}
		if before%2 == 1 {
			which = followers - 1 - which
		}
		before, word = word, (word*5+which*17+7)%vocab
	}
	return nil
}

// likely is in how many of 16 cases a word is followed by its follower number which.
func likely(which uint64) uint64 { return [followers]uint64{8, 4, 3, 1}[which] }

// lazy is an engine that trains on the first part of a share only.
type lazy struct {
	*cpu.Engine
	percent int // 0: all
}

// Step is part of engine.Engine.
func (e lazy) Step(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	if e.percent > 0 {
		total := uint64(batch.Total(spans))
		spans = batch.Cut(spans, 0, uint32(max(1, total*uint64(e.percent)/100)))
	}
	return e.Engine.Step(ctx, params, state, spans, step)
}
