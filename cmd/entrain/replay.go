package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/tui"
)

// replayClock is the time in a log that is played: it runs some times as fast as the wall clock's, and can be stopped.
type replayClock struct {
	mu     sync.Mutex // guards all below
	at     time.Time  // in the log, at the wall clock's since
	since  time.Time
	speed  float64
	paused bool
	end    time.Time // of the log, once known: the clock stops there
}

// The speeds that keys can choose.
const (
	speedMin = 1. / 16
	speedMax = 1 << 16
)

func (k *replayClock) now(wall time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.read(wall)
}

func (k *replayClock) read(wall time.Time) time.Time {
	if k.paused || k.since.IsZero() {
		return k.at
	}
	t := k.at.Add(time.Duration(float64(wall.Sub(k.since)) * k.speed))
	if !k.end.IsZero() && t.After(k.end) {
		return k.end
	}
	return t
}

// jump sets the time, and lets it run.
func (k *replayClock) jump(wall, to time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at, k.since = to, wall
}

// stopAt is told the log's last time.
func (k *replayClock) stopAt(end time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.end = end
}

// steer does what a key asks for, and says in a word how the replay goes then.
func (k *replayClock) steer(wall time.Time, s tui.Steer) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at, k.since = k.read(wall), wall
	switch s {
	case tui.Pause:
		k.paused = !k.paused
	case tui.Faster:
		k.speed = min(2*k.speed, speedMax)
	case tui.Slower:
		k.speed = max(k.speed/2, speedMin)
	}
	if k.paused {
		return "replay paused"
	}
	return fmt.Sprintf("replay x%g", k.speed)
}

// wait is how long it takes until the clock shows t; a moment, if it is stopped.
func (k *replayClock) wait(wall, t time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	missing := t.Sub(k.read(wall))
	if missing <= 0 {
		return 0
	}
	if k.paused {
		return replayStep
	}
	return min(time.Duration(float64(missing)/k.speed)+time.Microsecond, replayStep)
}

const (
	// replayStep bounds a wait, so that keys are heard.
	replayStep = 100 * time.Millisecond
	// replayGap is the longest time without a record that is played: a participant may have been away for days.
	replayGap = time.Minute
)

// replay plays a log.
func (c console) replay(ctx context.Context, o watchOptions) error {
	if !(o.speed >= 0 && o.speed <= speedMax) {
		return fmt.Errorf("--speed %g: want 0 to %d", o.speed, speedMax)
	}
	log, err := runlog.Open(o.replay)
	if err != nil {
		return err
	}
	defer log.Close()
	clock := &replayClock{speed: max(o.speed, speedMin)}
	opts := c.windowOptions(o.noColor)
	opts.Clock = func() time.Time { return clock.now(time.Now()) }
	var window *tui.Window
	if o.speed > 0 {
		opts.Replay = func(s tui.Steer) { window.Note(clock.steer(time.Now(), s)) }
	}
	window = tui.New(opts)
	window.NameOps(opsBeside(o.replay))
	return c.show(ctx, o.plain, window, func(ctx context.Context) error { return play(ctx, log, clock, window, o.speed == 0) })
}

// play gives a window the records of a log at their times, or all at once.
func play(ctx context.Context, log *runlog.Log, clock *replayClock, window *tui.Window, atOnce bool) error {
	var last time.Time
	records := 0
	for ; ; records++ {
		r, err := log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if wall := time.Now(); atOnce || records == 0 || r.Time.Sub(clock.now(wall)) > replayGap {
			clock.jump(wall, r.Time)
		}
		for !atOnce {
			d := clock.wait(time.Now(), r.Time)
			if d == 0 {
				break
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(d):
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		_ = window.Record(r) // a window takes everything
		last = r.Time
	}
	if records == 0 {
		return errors.New("the log holds no records yet")
	}
	clock.stopAt(last)
	note := "end of the log"
	if log.Torn() {
		note += ", which is cut off in the middle of a record"
	}
	window.Note(note)
	return nil
}
