package retry

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var errBusy = errors.New("busy")

func always(error) bool { return true }

func TestDoPausesLongerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		err := Policy{Attempts: 6, Min: time.Second, Max: 5 * time.Second}.Do(t.Context(), always, func() error {
			at = append(at, time.Since(began))
			return errBusy
		})
		want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 12 * time.Second, 17 * time.Second}
		if !errors.Is(err, errBusy) || !slices.Equal(at, want) {
			t.Errorf("tried at %v, want %v; error %v", at, want, err)
		}
	})
}

func TestDoEnds(t *testing.T) {
	policy := Policy{Min: time.Millisecond, Max: time.Millisecond}
	calls := 0
	if err := policy.Do(t.Context(), always, func() error {
		if calls++; calls < 4 {
			return errBusy
		}
		return nil
	}); err != nil || calls != 4 {
		t.Errorf("success after %d calls, want 4: %v", calls, err)
	}
	fatal := errors.New("fatal")
	again := func(err error) bool { return errors.Is(err, errBusy) }
	if err := policy.Do(t.Context(), again, func() error { return fatal }); !errors.Is(err, fatal) {
		t.Errorf("got %v, want the fatal error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := policy.Do(ctx, always, func() error { cancel(); return errBusy }); !errors.Is(err, errBusy) {
		t.Errorf("got %v after the end of the context, want the last error", err)
	}
}

func TestPauseAndJitterStayInBounds(t *testing.T) {
	p := Policy{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	if p.Pause(0) != p.Min || p.Pause(1) != p.Min || p.Pause(3) != 4*p.Min || p.Pause(1<<30) != p.Max {
		t.Errorf("pauses of %v, %v, %v, %v", p.Pause(0), p.Pause(1), p.Pause(3), p.Pause(1<<30))
	}
	for _, random := range []uint64{0, 1, 1 << 40, 1<<64 - 1} {
		if d := Jitter(p.Max, 4, random); d < p.Max*3/4 || d > p.Max {
			t.Errorf("a pause of %v, want three quarters of %v to all", d, p.Max)
		}
	}
	if Jitter(0, 2, 7) != 0 {
		t.Error("no pause became one")
	}
}

func TestWaitNamesTheCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBusy)
	if err := Wait(ctx, time.Hour); !errors.Is(err, errBusy) {
		t.Errorf("got %v", err)
	}
}

func TestWaitTakesNoTimeInASimulation(t *testing.T) {
	ctx := Simulate(t.Context(), 3*time.Hour)
	for range 2 {
		if err := Wait(ctx, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if got := Spent(ctx); got != 2*time.Hour {
		t.Errorf("spent %v", got)
	}
	if err := Wait(ctx, 2*time.Hour); !errors.Is(err, context.DeadlineExceeded) || Spent(ctx) != 3*time.Hour {
		t.Errorf("got %v, spent %v", err, Spent(ctx))
	}
	if Spent(t.Context()) != 0 {
		t.Error("time was spent outside of a simulation")
	}
}
