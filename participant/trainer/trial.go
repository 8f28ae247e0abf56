package trainer

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

// trialEnough is the least duration of a trial that counts; a shorter one is repeated with more
// sequences.
const trialEnough = time.Second

// Trial measures how many tokens of the run's model this machine trains a second, where shares go
// by speed; elsewhere it returns 0. The run's first steps measure better, but its first share must
// be assigned before them.
func (t *Trainer) Trial(ctx context.Context) (uint32, error) {
	if t.Spec.Batch.Shares != spec.SharesSpeed {
		return 0, nil
	}
	// Random weights take as long as the run's, which may not be here yet.
	params, state := make([]float32, t.Engine.ParamsLen()), make([]float32, t.Engine.StateLen())
	source := prng.New(wire.Sum("entrain/trial"), "weights")
	for i := range params {
		params[i] = (float32(source.Uint64()>>40)/(1<<24) - 0.5) / 16
	}
	speed := uint32(0)
	for sequences := uint32(1); sequences <= MicroBatch; sequences *= MicroBatch {
		clear(state)
		begin := time.Now()
		made, err := t.Engine.Step(ctx, cpu.Floats(params), cpu.Floats(state), []batch.Span{{Count: sequences}}, 1)
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
