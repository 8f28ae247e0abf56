package bucket

import (
	"context"
	"time"
)

// spent is time that passes for an operation in a simulation without passing for the process.
type spent struct{ total, limit time.Duration }

type spentKey struct{}

// withSpent returns a context in which [Wait] does not wait but counts, up to a limit.
func withSpent(ctx context.Context, limit time.Duration) (context.Context, *spent) {
	s := &spent{limit: limit}
	return context.WithValue(ctx, spentKey{}, s), s
}

// Wait waits for d, or until ctx ends, of which it returns the error. In a simulation, which runs an operation in no time and delivers its result
// later, it adds d to how much later: whatever takes time in a bucket, retries and the stores of tests alike, waits by this function.
func Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s, ok := ctx.Value(spentKey{}).(*spent); ok {
		if s.total += max(d, 0); s.total >= s.limit {
			s.total = s.limit
			return context.DeadlineExceeded
		}
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Spent is how much simulated time an operation has taken so far: 0 outside of simulations.
func Spent(ctx context.Context) time.Duration {
	if s, ok := ctx.Value(spentKey{}).(*spent); ok {
		return s.total
	}
	return 0
}
