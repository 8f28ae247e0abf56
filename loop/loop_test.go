package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/entrain-network/entrain/loop"
	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestEventsOfOneTimeRunInTheOrderPosted(t *testing.T) {
	v := loop.NewVirtual(start)
	var got []string
	say := func(s string) func() { return func() { got = append(got, s) } }
	v.After(time.Second, say("second a"))
	v.Post(say("now a"))
	v.After(time.Second, say("second b"))
	v.Post(func() {
		say("now b")()
		v.Post(say("now d"))
	})
	v.After(-time.Hour, say("now c"))
	for v.Step() {
	}
	want := []string{"now a", "now b", "now c", "now d", "second a", "second b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if now := v.Now(); !now.Equal(start.Add(time.Second)) {
		t.Errorf("the clock stands at %v", now)
	}
}

// TestVirtualRunsEverythingOnceInOrder compares the heap with a stable sort.
func TestVirtualRunsEverythingOnceInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delays := rapid.SliceOf(rapid.IntRange(0, 20)).Draw(t, "delays")
		stopped := rapid.SliceOfN(rapid.Bool(), len(delays), len(delays)).Draw(t, "stopped")
		v := loop.NewVirtual(start)
		var got, want []int
		for i, d := range delays {
			stop := v.After(time.Duration(d)*time.Second, func() {
				if at := v.Now().Sub(start); at != time.Duration(d)*time.Second {
					t.Errorf("event %d of %d s ran at %v", i, d, at)
				}
				got = append(got, i)
			})
			if stopped[i] {
				stop()
				stop()
			} else {
				want = append(want, i)
			}
		}
		slices.SortStableFunc(want, func(a, b int) int { return delays[a] - delays[b] })
		for v.Step() {
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestRunStopsAtItsTime(t *testing.T) {
	v := loop.NewVirtual(start)
	ran := 0
	var again func()
	again = func() { ran++; v.After(time.Second, again) }
	v.Post(again)
	v.Run(start.Add(10 * time.Second))
	if ran != 11 {
		t.Errorf("ran %d times in 10 s, want 11", ran)
	}
	v.Run(start.Add(10*time.Second + time.Millisecond))
	if got := v.Now().Sub(start); got != 10*time.Second+time.Millisecond {
		t.Errorf("the clock stands at %v", got)
	}
	if at, ok := v.Next(); !ok || at.Sub(start) != 11*time.Second {
		t.Errorf("next event at %v, %v", at.Sub(start), ok)
	}
}

func TestVirtualWorkCostsVirtualTime(t *testing.T) {
	v := loop.NewVirtual(start)
	worked := false
	var doneAt time.Duration
	v.Work(3*time.Second, func() { worked = true }, func() { doneAt = v.Now().Sub(start) })
	if !worked {
		t.Error("the work did not run at once")
	}
	for v.Step() {
	}
	if doneAt != 3*time.Second {
		t.Errorf("done after %v, want 3s", doneAt)
	}
}

func TestAnEndedScopeRunsNothing(t *testing.T) {
	v := loop.NewVirtual(start)
	crashed, alive := loop.NewScope(v), loop.NewScope(v)
	var got []string
	for name, s := range map[string]*loop.Scope{"crashed": crashed, "alive": alive} {
		s.Post(func() { got = append(got, name) })
		s.After(time.Second, func() { got = append(got, name) })
		s.Work(time.Second, func() {}, func() { got = append(got, name) })
	}
	crashed.End()
	crashed.Post(func() { got = append(got, "crashed") })
	crashed.Work(0, func() { got = append(got, "crashed") }, func() {})
	for v.Step() {
	}
	if want := []string{"alive", "alive", "alive"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRealRunsInOrderAndOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := loop.NewReal()
		ctx, cancel := context.WithCancel(t.Context())
		var got []string // touched on the loop only: the race detector watches
		r.Post(func() { got = append(got, "before run") })
		r.After(time.Hour, func() { got = append(got, "hour"); cancel() })
		stop := r.After(time.Minute, func() { got = append(got, "stopped") })
		r.After(time.Second, func() {
			stop()
			r.Work(0, func() { time.Sleep(time.Minute) }, func() { got = append(got, "worked") })
			got = append(got, "second")
		})
		if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		if want := []string{"before run", "second", "worked", "hour"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestATimerThatFiredCanStillBeStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := loop.NewReal()
		ctx, cancel := context.WithCancel(t.Context())
		r.Post(func() {
			stop := r.After(time.Second, func() { t.Error("ran after stop") })
			time.Sleep(time.Minute) // the loop is busy while the timer fires
			stop()
			r.Post(cancel)
		})
		r.Run(ctx)
	})
}

func TestRunWaitsForWorkAndDropsItsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := loop.NewReal()
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		r.Work(0, func() { time.Sleep(time.Hour); ended = true }, func() { t.Error("done ran after the end") })
		r.Post(cancel)
		r.Run(ctx)
		if !ended {
			t.Error("Run returned before the work")
		}
		r.Post(func() { t.Error("posted after the end, and ran") })
		r.Work(0, func() { t.Error("work began after the end") }, func() {})
		synctest.Wait()
	})
}

func TestManyGoroutinesPost(t *testing.T) {
	r := loop.NewReal()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const posters, each = 8, 1000
	var next [posters]int
	left := posters * each
	for p := range posters {
		go func() {
			for i := range each {
				r.Post(func() {
					if next[p] != i {
						t.Errorf("poster %d: event %d came when %d was due", p, i, next[p])
					}
					next[p]++
					if left--; left == 0 {
						cancel()
					}
				})
			}
		}()
	}
	r.Run(ctx)
	if left != 0 {
		t.Errorf("%d events are missing", left)
	}
}

func ExampleVirtual() {
	v := loop.NewVirtual(time.Unix(0, 0).UTC())
	v.After(time.Hour, func() { fmt.Println("an hour later") })
	v.Work(time.Minute, func() {}, func() { fmt.Println("a minute later") })
	v.Run(v.Now().Add(2 * time.Hour))
	fmt.Println(v.Now().Format(time.TimeOnly))
	// Output:
	// a minute later
	// an hour later
	// 02:00:00
}

func BenchmarkVirtual(b *testing.B) {
	v := loop.NewVirtual(start)
	for i := range 1000 {
		var again func()
		again = func() { v.After(time.Duration(i)*time.Microsecond+time.Millisecond, again) }
		again()
	}
	for b.Loop() {
		v.Step()
	}
}
