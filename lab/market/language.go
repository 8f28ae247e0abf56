package market

import (
	"context"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// language is text in which each word is followed by one of four; the previous word determines
// their probabilities. Its sequences are numbered.
type language struct{ from uint64 }

// followers is the number of words that can follow a word.
const followers = 4

// Read implements engine.Source.
func (l language) Read(i uint64, dst []uint32) error {
	random := prng.New(wire.Sum("entrain/market-language", wire.AppendU64(nil, l.from+i)), "sequence")
	vocab := uint64(Model.Vocab) // all models have it
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

// likely holds, for each follower of a word, in how many of 16 cases it follows.
func likely(which uint64) uint64 { return [followers]uint64{8, 4, 3, 1}[which] }

// lazy is an engine that trains only on the first part of a share.
type lazy struct {
	engine.Engine
	percent int // 0: all
}

// Step implements engine.Engine.
func (e lazy) Step(ctx context.Context, params, state engine.Vector, spans []batch.Span, step uint32) (engine.Result, error) {
	if e.percent > 0 {
		total := uint64(batch.Total(spans))
		spans = batch.Cut(spans, 0, uint32(max(1, total*uint64(e.percent)/100)))
	}
	return e.Engine.Step(ctx, params, state, spans, step)
}
