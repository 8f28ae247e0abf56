package trainer

import (
	"math"
	"time"

	"github.com/entrain-network/entrain/bench"
	"github.com/entrain-network/entrain/exact"
)

// StepCost relates training to the machine's peak speed.
type StepCost struct {
	PerToken float64 // floating-point operations of the products of a step
	Peak     float64 // of all workers, a second
}

// NewStepCost measures the peak of multiply-adds, as entrain bench does.
func NewStepCost(t *Trainer) StepCost {
	c := StepCost{PerToken: bench.StepOperations(t.Model, t.Spec.Data.Sequence)}
	pool := exact.NewPool(t.Computing.Workers)
	defer pool.Close()
	operations := make([]int, t.Computing.Workers)
	for range peakTries {
		start := time.Now()
		pool.RunOn(t.Computing.Workers, func(w *exact.Worker, k int) { operations[k] = w.Peak(peakRounds) })
		took := time.Since(start).Seconds()
		sum := 0
		for _, n := range operations {
			sum += n
		}
		c.Peak = math.Max(c.Peak, float64(sum)/took)
	}
	return c
}

// Share returns the fraction of the peak at which a number of tokens was trained.
func (c StepCost) Share(tokens uint64, seconds float64) float64 {
	if !(seconds > 0 && c.Peak > 0) {
		return 0
	}
	return float64(tokens) * c.PerToken / seconds / c.Peak
}

// peakTries is the number of measurements of the peak, of several milliseconds each. The best
// counts, because something else may run meanwhile.
const (
	peakTries  = 8
	peakRounds = 1 << 17
)
