package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/entrain-network/entrain/runlog"
)

// A Replay plays a log in a window: make it with [NewReplay], pass Play to [Window.Show].
type Replay struct {
	Window *Window
	clock  replayClock
	log    *runlog.Log
	atOnce bool
}

// SpeedMax is the highest speed of a replay.
const (
	SpeedMax = 1 << 16
	speedMin = 1. / 16
)

// NewReplay returns a replay of a log, speed times as fast as it happened; 0 plays all at once.
// Keys steer it.
func NewReplay(opts Options, log *runlog.Log, speed float64) *Replay {
	r := &Replay{log: log, atOnce: speed == 0, clock: replayClock{speed: max(speed, speedMin)}}
	opts.Clock = func() time.Time { return r.clock.now(time.Now()) }
	if !r.atOnce {
		opts.replay = func(s steer) { r.Window.Note(r.clock.steer(time.Now(), s)) }
	}
	r.Window = New(opts)
	return r
}

// Play gives the window the records of the log at their times.
func (p *Replay) Play(ctx context.Context) error {
	var last time.Time
	for {
		r, err := p.log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if wall := time.Now(); p.atOnce || last.IsZero() || r.Time.Sub(p.clock.now(wall)) > replayGap {
			p.clock.jump(wall, r.Time)
		}
		for !p.atOnce {
			d := p.clock.wait(time.Now(), r.Time)
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
		_ = p.Window.Record(r) // never fails
		last = r.Time
	}
	if last.IsZero() {
		return errors.New("the log holds no records yet")
	}
	p.clock.stopAt(last)
	note := "end of the log"
	if p.log.Torn() {
		note += ", which is cut off in the middle of a record"
	}
	p.Window.Note(note)
	return nil
}

const (
	// replayStep bounds a wait, so that keys are heard.
	replayStep = 100 * time.Millisecond
	// replayGap is the longest time without a record that is played: a participant may have been
	// away for days.
	replayGap = time.Minute
)

// replayClock is the time in a log that is played: it runs some times as fast as the wall clock's,
// and can be stopped.
type replayClock struct {
	mu     sync.Mutex // guards all below
	at     time.Time  // in the log, at the wall clock's since
	since  time.Time
	speed  float64
	paused bool
	end    time.Time // of the log, once known: the clock stops there
}

// now returns the time in the log.
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

// stopAt sets the log's last time.
func (k *replayClock) stopAt(end time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.end = end
}

// steer does what a key asks for, and returns how the replay continues.
func (k *replayClock) steer(wall time.Time, s steer) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at, k.since = k.read(wall), wall
	switch s {
	case pause:
		k.paused = !k.paused
	case faster:
		k.speed = min(2*k.speed, SpeedMax)
	case slower:
		k.speed = max(k.speed/2, speedMin)
	}
	if k.paused {
		return "replay paused"
	}
	return fmt.Sprintf("replay x%g", k.speed)
}

// wait returns the time until the clock shows t, at most replayStep.
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
