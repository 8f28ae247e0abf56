package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
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
	Numerics string `json:"numerics"`
	// Losses are those after each eighth of the tokens, by seed. They are fewer in a partial
	// comparison.
	Losses [][]float64 `json:"heldout_loss"`
	// Mean is the mean over all seeds, and Spread the greatest loss less the least, after each
	// eighth that all seeds have.
	Mean   []float64 `json:"mean"`
	Spread []float64 `json:"spread"`
	// Relative is the mean less that of binary32, as a part of it, over the seeds that both have,
	// after each eighth.
	Relative []float64 `json:"relative"`
}

// NumericsComparison is what models learn with each arithmetic.
type NumericsComparison struct {
	Params  int           `json:"params"`
	Tokens  uint64        `json:"tokens"` // that each run trains on
	HeldOut uint64        `json:"heldout_tokens"`
	Seeds   int           `json:"seeds"`
	Rows    []NumericsRow `json:"rows"`
}

// MeasureNumerics trains one model by each row, in each arithmetic and from each seed, on the same
// tokens in the same order. The learning rates are those that are best for the first seed in
// binary32. One seed follows another, so that all arithmetics can be compared after the first.
func MeasureNumerics(ctx context.Context, o NumericsOptions) (all NumericsComparison, err error) {
	o.Seeds = cmp.Or(o.Seeds, 3)
	rows := slices.Clone(o.Rows)
	all.Seeds = o.Seeds
	arithmetics := []llama.Numerics{llama.Exact, llama.Exact8}
	for _, n := range arithmetics {
		m := o.Model
		m.Numerics = n
		if err := m.Check(); err != nil {
			return all, err
		}
	}
	all.Rows = make([]NumericsRow, len(arithmetics)*len(rows))
	for seed := range o.Seeds {
		for a, n := range arithmetics {
			for i := range rows {
				run := o.LearningOptions
				run.Model.Numerics, run.Seed, run.Rows = n, fmt.Sprint("seed ", seed), rows[i:i+1]
				run.Progress = func(what string) { o.Progress(fmt.Sprintf("%v, seed %d: %s", n, seed, what)) }
				l, err := MeasureLearning(ctx, run)
				if errors.Is(err, errNotBegun) {
					continue
				}
				if err != nil {
					return all, err
				}
				all.Params, all.Tokens, all.HeldOut = l.Params, l.Tokens, l.HeldOut
				rows[i].Rate, rows[i].Fixed = l.Runs[0].Rate, true
				r := &all.Rows[a*len(rows)+i]
				r.LearningRow, r.Numerics = l.Runs[0].LearningRow, n.String()
				r.Losses = append(r.Losses, l.Runs[0].Losses)
			}
		}
	}
	for i := range all.Rows {
		all.Rows[i].compare(all.Rows[i%len(rows)])
	}
	all.Rows = slices.DeleteFunc(all.Rows, func(r NumericsRow) bool { return len(r.Losses) == 0 })
	return all, nil
}

// compare fills in what follows from the losses, and those of the row in binary32.
func (r *NumericsRow) compare(base NumericsRow) {
	for point := range learningPoints {
		var mean, ours, theirs float64
		least, most, n := math.Inf(1), math.Inf(-1), 0
		for seed, losses := range r.Losses {
			if point >= len(losses) {
				continue
			}
			x := losses[point]
			least, most, mean, n = min(least, x), max(most, x), mean+x, n+1
			if seed < len(base.Losses) && point < len(base.Losses[seed]) {
				ours, theirs = ours+x, theirs+base.Losses[seed][point]
			}
		}
		if n == len(r.Losses) && n > 0 {
			r.Mean, r.Spread = append(r.Mean, mean/float64(n)), append(r.Spread, most-least)
		}
		if theirs > 0 {
			r.Relative = append(r.Relative, ours/theirs-1)
		}
	}
}
