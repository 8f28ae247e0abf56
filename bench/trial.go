package bench

import (
	"context"
	"math"
	"slices"
	"time"
)

// A trial is something to measure.
type trial struct {
	work    float64      // of one call of run: operations or bytes
	run     func() error // does it once
	repeat  int          // calls that take as long as a trial should
	seconds []float64    // a call took, in each round
}

// rate is the work done in a second, the median over the rounds.
func (t *trial) rate() float64 { return t.work / median(t.seconds) }

// rateOf is the work done in a second in the mean of some rounds.
func (t *trial) rateOf(seconds []float64) float64 {
	sum := 0.0
	for _, s := range seconds {
		sum += t.work / s
	}
	return sum / float64(len(seconds))
}

// alternate runs the trials in turn, each at least so long, so many rounds, after each has been run once to warm up and to see how long it takes. A
// trial may stand in several places.
func alternate(ctx context.Context, rounds int, long time.Duration, trials []*trial) error {
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
			t.seconds = append(t.seconds, took.Seconds()/float64(t.repeat))
		}
	}
	return nil
}

// calibrate finds how many calls take that long.
func (t *trial) calibrate(ctx context.Context, long time.Duration) error {
	if _, err := t.time(ctx, 1); err != nil { // allocates, and fills caches
		return err
	}
	took, err := t.time(ctx, 1)
	if err != nil {
		return err
	}
	t.repeat = int(math.Ceil(float64(long) / float64(max(took, time.Microsecond))))
	return nil
}

// time returns how long so many calls take.
func (t *trial) time(ctx context.Context, calls int) (time.Duration, error) {
	start := time.Now()
	for range calls {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := t.run(); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}

// median returns the middle of x, which must not be empty; of two in the middle, their mean.
func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}
