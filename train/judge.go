package train

import (
	"context"
	"fmt"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Gradient is what a share's gradient shows to somebody who recomputes it.
type Gradient struct {
	Values []float32 // the mean over the share's sequences, before clipping; the engine's own memory, valid until it computes again
	Root   wire.Hash // merkle.BlobRoot of Values, which opens the Work of a commitment to the share
	Loss   float32   // mean over the share, nats a token
}

// Gradient computes the gradient of a share and leaves it there: no codec sees it, and no member's state is needed.
func (e *Engine) Gradient(ctx context.Context, params []float32, spans []batch.Span) (Gradient, error) {
	total := int(batch.Total(spans))
	if total == 0 {
		return Gradient{}, fmt.Errorf("train: a share without sequences")
	}
	loss, err := e.gradient(ctx, params, spans, total)
	if err != nil {
		return Gradient{}, err
	}
	return Gradient{Values: e.grad, Root: merkle.Root(e.Leaves(e.grad)), Loss: loss}, nil
}

// Loss is the mean loss on the sequences of spans, in nats a token.
func (e *Engine) Loss(ctx context.Context, params []float32, spans []batch.Span) (float64, error) {
	rows := e.cfg.Sequence + 1
	var sum float64
	var count, filled int
	flush := func() error {
		if err := ctx.Err(); err != nil || filled == 0 {
			return err
		}
		l, err := e.model.Loss(params, e.tokens[:filled*rows], filled, e.cfg.Sequence)
		sum += float64(float64(l) * float64(filled))
		filled = 0
		return err
	}
	for _, s := range spans {
		for i := s.Start; i < s.End(); i++ {
			if err := e.cfg.Data.Read(i, e.tokens[filled*rows:(filled+1)*rows]); err != nil {
				return 0, fmt.Errorf("sequence %d: %w", i, err)
			}
			count++
			if filled++; filled == e.cfg.Micro {
				if err := flush(); err != nil {
					return 0, err
				}
			}
		}
	}
	if count == 0 {
		return 0, fmt.Errorf("train: the loss on no sequences")
	}
	if err := flush(); err != nil {
		return 0, err
	}
	return sum / float64(count), nil
}
