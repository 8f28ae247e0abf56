package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/wire"
)

// trialEnough is how long a trial must have taken to be believed; a shorter one is repeated with more sequences.
const trialEnough = time.Second

// trial finds out how many tokens a second this machine trains of the run's model, where shares go by that; else it is 0. The first steps of
// the run tell better, but its first share has to be given before them.
func (t *trainer) trial(ctx context.Context) (uint32, error) {
	if t.spec.Batch.Shares != spec.SharesSpeed {
		return 0, nil
	}
	// Any weights take as long as the run's, which may not be here yet.
	params, state := make([]float32, t.engine.ParamsLen()), make([]float32, t.engine.StateLen())
	source := prng.New(wire.Sum("entrain/trial"), "weights")
	for i := range params {
		params[i] = (float32(source.Uint64()>>40)/(1<<24) - 0.5) / 16
	}
	speed := uint32(0)
	for sequences := uint32(1); sequences <= microBatch; sequences *= microBatch {
		clear(state)
		begin := time.Now()
		made, err := t.engine.Step(ctx, cpu.Floats(params), cpu.Floats(state), []batch.Span{{Count: sequences}}, 1)
		if err != nil {
			return 0, fmt.Errorf("trying how fast this machine trains: %w", err)
		}
		took := time.Since(begin)
		speed = uint32(min(max(float64(made.Tokens)/max(took.Seconds(), 1e-9), 1), math.MaxUint32))
		if took >= trialEnough {
			break
		}
	}
	return speed, nil
}
