// Package retry repeats operations that fail for a while, with growing pauses.
//
//	policy := retry.Policy{Attempts: 5, Min: time.Second, Max: time.Minute}
//	err := policy.Do(ctx, temporary, func() error { return upload(ctx) })
//
// In a simulation, which runs an operation in no time and delivers its result later, pauses take no
// time either: under a context of Simulate, Wait only counts.
package retry

import (
	"context"
	"time"
)

// Policy is how often to try an operation, and how long to pause in between.
type Policy struct {
	Attempts int           // at most; 0 for any number
	Min      time.Duration // the pause after the first failure; it doubles after each further one
	Max      time.Duration // the longest pause
}

// Do calls f until it succeeds, again reports false for its error, f has failed p.Attempts times,
// or ctx ends. It returns the last error of f.
func (p Policy) Do(ctx context.Context, again func(error) bool, f func() error) error {
	for failures := 1; ; failures++ {
		err := f()
		if err == nil || failures == p.Attempts || !again(err) || Wait(ctx, p.Pause(failures)) != nil {
			return err
		}
	}
}

// Pause returns the pause after a number of failures in a row.
func (p Policy) Pause(failures int) time.Duration {
	d := p.Min
	for i := 1; i < failures && d < p.Max; i++ {
		d *= 2
	}
	return min(d, p.Max)
}

// Jitter shortens a pause by up to a part-th of it, so that callers that failed together do not
// return together. Random is any random number.
func Jitter(d time.Duration, part, random uint64) time.Duration {
	return d - time.Duration(random%(uint64(d)/part+1))
}

// Wait returns after d, or returns the cause of the end of ctx. Under a context of Simulate it
// returns at once.
func Wait(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s, ok := ctx.Value(spentKey{}).(*spent); ok {
		if s.total += max(d, 0); s.total >= s.limit {
			s.total = s.limit
			return context.DeadlineExceeded
		}
		return nil
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// spent is time that passes for an operation in a simulation without passing for the process.
type spent struct{ total, limit time.Duration }

type spentKey struct{}

// Simulate returns a context under which Wait counts up to limit, after which it fails with
// context.DeadlineExceeded. An operation under it must not wait from several goroutines.
func Simulate(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, spentKey{}, &spent{limit: limit})
}

// Spent returns how long Wait would have waited under a context of Simulate; 0 under any other.
func Spent(ctx context.Context) time.Duration {
	if s, ok := ctx.Value(spentKey{}).(*spent); ok {
		return s.total
	}
	return 0
}
