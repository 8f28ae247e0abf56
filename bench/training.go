package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// Training is the speed of one model's training step in one arithmetic.
type Training struct {
	Model    string `json:"model"`    // a preset
	Numerics string `json:"numerics"` // as llama.Numerics are named
	Params   int    `json:"params"`
	Batch    int    `json:"batch"` // sequences
	Sequence int    `json:"sequence"`
	Tokens   Pair   `json:"tokens_per_second"`
	// Share is of the peak of binary32; more than 1 is possible in 8 bits.
	Share   Pair   `json:"share_of_peak"`
	Memory  uint64 `json:"memory_bytes"`      // of the whole program while it trains
	Skipped string `json:"skipped,omitempty"` // why nothing was measured
}

// measureTraining measures the models of the effort, each in both arithmetics, and says which do
// not fit.
func (b *bench) measureTraining(ctx context.Context, r *Report) error {
	for _, t := range b.trainings {
		b.progress(fmt.Sprintf("training %s, %d x %d tokens", t.Model, t.Batch, t.Sequence))
		both, err := b.trainingOf(ctx, t)
		switch {
		case errors.Is(err, ErrMemory):
			t.Skipped = err.Error()
			both = []Training{t}
		case err != nil:
			return err
		}
		r.Training = append(r.Training, both...)
	}
	return nil
}

// trainingOf measures one model. Both arithmetics, and one thread and all, take turns, each with a
// model of its own, because memory may not hold two.
func (b *bench) trainingOf(ctx context.Context, t Training) ([]Training, error) {
	cfg, err := llama.Preset(t.Model)
	if err != nil {
		return nil, err
	}
	t.Params = cfg.Layout().Len()
	if err := fits(stepMemory(cfg, t.Batch, t.Sequence), freeMemory()); err != nil {
		return nil, err
	}
	pools := []*exact.Pool{b.one, b.all}
	if b.all == b.one {
		pools = pools[:1]
	}
	numerics := []llama.Numerics{llama.Exact, llama.Exact8}
	both, steps := make([]Training, len(numerics)), make([][2]Steps, len(numerics))
	for range b.turns {
		for i, n := range numerics {
			cfg.Numerics = n
			for k, pool := range pools {
				m, err := measureStep(ctx, cfg, t.Batch, t.Sequence, pool, b.turn)
				if err != nil {
					return nil, err
				}
				s := &steps[i][k]
				s.Seconds, s.Shares = append(s.Seconds, m.Seconds...), append(s.Shares, m.Shares...)
				both[i].Memory = max(both[i].Memory, m.Memory)
			}
		}
	}
	tokens := float64(t.Batch * t.Sequence)
	for i, n := range numerics {
		one, all := &steps[i][0], &steps[i][len(pools)-1]
		t.Numerics, t.Memory = n.String(), both[i].Memory
		t.Tokens = Pair{tokens / one.median(), tokens / all.median()}
		t.Share = Pair{one.Share(), all.Share()}
		both[i] = t
	}
	return both, nil
}

// fits returns ErrMemory if a step needs more bytes than are free; free is 0 if that is not known.
func fits(need, free uint64) error {
	if free > 0 && need > free {
		return fmt.Errorf("%w: it takes about %.1f GB, and %.1f GB are free", ErrMemory, float64(need)/1e9, float64(free)/1e9)
	}
	return nil
}

// Steps is what was measured of a Step.
type Steps struct {
	Params     int
	Operations float64   // floating-point operations of a step, as Step counts them
	Seconds    []float64 // each step took
	Processor  []float64 // seconds of all processors that this program took meanwhile, or 0
	Shares     []float64 // of the peak of as many threads, measured before and after each step
	Memory     uint64    // bytes the whole program had from the system
	Loss       float32   // of the last step

	step *Step
	pool *exact.Pool
}

// beginSteps makes a Step and does it once to warm up.
func beginSteps(cfg llama.Config, batch, sequence int, pool *exact.Pool) (*Steps, error) {
	debug.FreeOSMemory() // of what was measured before
	s, err := newStep(cfg, batch, sequence, pool)
	if err != nil {
		return nil, err
	}
	_, err = s.Run()
	return &Steps{Params: s.Params(), Operations: s.Operations(), step: s, pool: pool}, err
}

// one measures a step, between two peaks.
func (m *Steps) one(ctx context.Context) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	peak := peakSpeed(m.pool)
	before, processor := time.Now(), processorSeconds()
	if m.Loss, err = m.step.Run(); err != nil {
		return err
	}
	took := time.Since(before).Seconds()
	m.Processor = append(m.Processor, processorSeconds()-processor)
	m.Seconds = append(m.Seconds, took)
	m.Shares = append(m.Shares, m.Operations/took/((peak+peakSpeed(m.pool))/2))
	return nil
}

// measureStep makes a Step, does it once to warm up, and then measures it, at least once and for at
// least long.
func measureStep(ctx context.Context, cfg llama.Config, batch, sequence int, pool *exact.Pool, long time.Duration) (*Steps, error) {
	m, err := beginSteps(cfg, batch, sequence, pool)
	if err != nil {
		return nil, err
	}
	for start := time.Now(); len(m.Seconds) == 0 || time.Since(start) < long; {
		if err := m.one(ctx); err != nil {
			return nil, err
		}
	}
	m.Memory = usedMemory()
	m.step = nil
	return m, nil
}

// median returns the median duration of a step in seconds.
func (s *Steps) median() float64 { return Median(s.Seconds) }

// Share is the share of the peak that a step reaches.
func (s *Steps) Share() float64 { return Median(s.Shares) }

// peakSpeed returns the most floating-point operations a second that the pool's workers reach now.
func peakSpeed(pool *exact.Pool) float64 {
	const calls = 4 // some 10 milliseconds
	start := time.Now()
	for range calls {
		doPeak(pool)
	}
	return calls * peakOperations(pool) / time.Since(start).Seconds()
}

// usedMemory returns the bytes that this program has from the system.
func usedMemory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
