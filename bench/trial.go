package bench

import (
	"context"
	"math"
	"slices"
	"time"
)

// A Trial is something to measure.
type Trial struct {
	Work    float64      // operations or bytes of one call of Run
	Run     func() error // does it once
	Seconds []float64    // a call took, in each round; Alternate appends to it

	repeat int // calls in a row, so that a measurement is long enough for the clock
}

// rate returns the work done in a second, the median over the rounds.
func (t *Trial) rate() float64 { return t.Work / Median(t.Seconds) }

// rateOf returns the work done in a second, the mean over the given rounds.
func (t *Trial) rateOf(seconds []float64) float64 {
	sum := 0.0
	for _, s := range seconds {
		sum += t.Work / s
	}
	return sum / float64(len(seconds))
}

// Alternate runs the trials in turn, round after round, each for at least long. Before that it runs
// each once to warm up and once to see how long it takes. A trial may be listed more than once.
func Alternate(ctx context.Context, rounds int, long time.Duration, trials []*Trial) error {
	for _, t := range trials {
		if err := t.calibrate(ctx, long); err != nil {
			return err
		}
	}
	for range rounds {
		for _, t := range trials {
			took, err := t.time(ctx, t.repeat)
			if err != nil {
				return err
			}
			t.Seconds = append(t.Seconds, took.Seconds()/float64(t.repeat))
		}
	}
	return nil
}

// calibrate sets repeat to the number of calls that take at least long.
func (t *Trial) calibrate(ctx context.Context, long time.Duration) error {
	if _, err := t.time(ctx, 1); err != nil { // allocates memory and fills caches
		return err
	}
	took, err := t.time(ctx, 1)
	if err != nil {
		return err
	}
	t.repeat = int(math.Ceil(float64(long) / float64(max(took, time.Microsecond))))
	return nil
}

// time returns how long the given number of calls takes.
func (t *Trial) time(ctx context.Context, calls int) (time.Duration, error) {
	start := time.Now()
	for range calls {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := t.Run(); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// Median returns the middle of x, or the mean of the two in the middle. x must not be empty.
func Median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}
