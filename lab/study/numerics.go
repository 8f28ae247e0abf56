package study

import (
	"context"
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/llama"
)

// NumericsOptions are what a comparison of arithmetics may be told.
type NumericsOptions struct {
	LearningOptions
	Seeds int // runs of each row and arithmetic, from different first parameters
}

// NumericsRow is what came of a row in one arithmetic.
type NumericsRow struct {
	LearningRow
	Numerics string    `json:"numerics"`
	Losses   []float64 `json:"heldout_loss"` // after all tokens, by seed
	Mean     float64   `json:"mean"`
	Spread   float64   `json:"spread"` // of the losses, greatest less least
	// Relative is the mean less that of binary32, as a part of it.
	Relative float64 `json:"relative"`
}

// NumericsComparison is what models learn with each arithmetic.
type NumericsComparison struct {
	Params int           `json:"params"`
	Tokens uint64        `json:"tokens"` // that each run trained on
	Seeds  int           `json:"seeds"`
	Rows   []NumericsRow `json:"rows"`
}

// MeasureNumerics trains one model by each row, in each arithmetic and from each seed, on the same
// tokens in the same order. The learning rates are those that are best for the first seed in
// binary32.
func MeasureNumerics(ctx context.Context, o NumericsOptions) (all NumericsComparison, err error) {
	o.Seeds = orDefault(o.Seeds, 3)
	rows := slices.Clone(o.Rows)
	all.Seeds = o.Seeds
	for _, n := range []llama.Numerics{llama.Exact, llama.Exact8} {
		compared := make([]NumericsRow, len(rows))
		for seed := range o.Seeds {
			run := o.LearningOptions
			run.Model.Numerics, run.Seed, run.Rows = n, fmt.Sprint("seed ", seed), rows
			run.Progress = func(what string) { o.Progress(fmt.Sprintf("%v, seed %d: %s", n, seed, what)) }
			l, err := MeasureLearning(ctx, run)
			if err != nil {
				return all, err
			}
			all.Params, all.Tokens = l.Params, l.Tokens
			for i, r := range l.Runs {
				rows[i].Rate, rows[i].Fixed = r.Rate, true
				compared[i].LearningRow, compared[i].Numerics = r.LearningRow, n.String()
				compared[i].Losses = append(compared[i].Losses, r.last())
			}
		}
		for i := range compared {
			r := &compared[i]
			for _, loss := range r.Losses {
				r.Mean += loss / float64(o.Seeds)
			}
			r.Spread = slices.Max(r.Losses) - slices.Min(r.Losses)
			base := r
			if n != llama.Exact {
				base = &all.Rows[i]
			}
			r.Relative = r.Mean/base.Mean - 1
		}
		all.Rows = append(all.Rows, compared...)
	}
	return all, nil
}
