package founding

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// unfunded says what a run's treasury of some tokens lacks to pay for the whole run, and with which
// command it is filled; "" if it lacks nothing.
func unfunded(s spec.Spec, treasury uint64) string {
	var whole, sum uint64
	pays := ""
	steps := uint64(s.Steps - s.Before())
	if s.Trust.Rate > 0 {
		var sequences uint64
		for range steps {
			sequences += uint64(batchSize(s, (s.First()+sequences)*uint64(s.Data.Sequence)))
		}
		pays, whole = view.Tokens(s.Trust.Rate)+" a point", times(s.Trust.Rate, sequences)
	}
	if n := uint64(s.Scores.Windows); s.Scores.Emission > 0 && n > 0 {
		if pays != "" {
			pays += " and "
		}
		pays += view.Tokens(s.Scores.Emission) + " a period"
		if period := time.Duration(s.Times.RoundTrain) * time.Duration(n); s.Buckets() && period > 0 {
			daily := float64(s.Scores.Emission) * float64(24*time.Hour) / float64(period)
			pays += fmt.Sprintf(" (about %s a day, at a window in %s)", view.Thousands(uint64(math.Min(daily, 1<<62))), view.Lasts(time.Duration(s.Times.RoundTrain)))
		}
		sum = times(s.Scores.Emission, (steps+n-1)/n)
	}
	if whole += min(sum, math.MaxUint64-whole); whole <= treasury {
		return ""
	}
	return fmt.Sprintf("the treasury, which pays %s, has %s and lacks %s for the whole run; fill it with: entrain wallet send %s %d",
		pays, view.Tokens(treasury), view.Thousands(whole-treasury), s.Name, whole-treasury)
}

// times returns a*b, or the largest number if that is less.
func times(a, b uint64) uint64 {
	if over, n := bits.Mul64(a, b); over == 0 {
		return n
	}
	return math.MaxUint64
}
