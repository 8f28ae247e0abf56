package blocks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
)

// The rounds of a measurement with watchers: those before it, in which every slot of the ring is
// used, and those that are measured, without watchers and with them.
const (
	roundsBefore   = 6
	roundsMeasured = 4
)

// WatchedOptions are the settings of a measurement of a replica with watchers.
type WatchedOptions struct {
	Options
	Watchers int
	Pace     time.Duration // the least time of a round
	// Program runs Attach with the replica's endpoint in another process, which has descriptors of
	// its own, and whose processor time is not the replica's.
	Program func(ctx context.Context, endpoint string) *exec.Cmd
	Say     func(string)
}

// Watched is what light watchers take.
type Watched struct {
	Members, Watchers int
	Rounds            uint32
	State             int // bytes of the run's state
	Watcher           Attached
	// Replica is its processor time for a watcher and round: that of a round with watchers, less
	// that of one without.
	Replica time.Duration
	Memory  uint64 // of the replica for a watcher
}

// RunWatched drives a replica through rounds of a run as Run does, without watchers and then with
// them.
func RunWatched(ctx context.Context, o WatchedOptions) (r Watched, err error) {
	m := newMembers(o.Members)
	m.roundMs, m.epochMs = uint64(max(20*time.Second, 4*o.Pace).Milliseconds()), 1<<32
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := found(ctx, cancel, o.Options, m)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	r.Members, r.Watchers = o.Members, o.Watchers
	if _, err := c.play(ctx, roundsBefore, 0); err != nil {
		return r, err
	}
	o.Say(fmt.Sprintf("%d rounds are over", roundsBefore))
	alone, err := c.play(ctx, roundsMeasured, o.Pace)
	if err != nil {
		return r, err
	}
	before := memory()
	a, err := attach(ctx, o.Program(ctx, c.replica.Endpoint()))
	if err != nil {
		return r, err
	}
	r.Memory = (max(memory(), before) - before) / uint64(o.Watchers)
	o.Say(fmt.Sprintf("%d watchers have the state", o.Watchers))
	if _, err := c.play(ctx, 1, o.Pace); err != nil { // what the watchers' beginning takes
		return r, err
	}
	if err := a.begin(); err != nil {
		return r, err
	}
	with, err := c.play(ctx, roundsMeasured, o.Pace)
	if err != nil {
		return r, err
	}
	if r.Watcher, err = a.end(); err != nil {
		return r, err
	}
	r.Rounds, r.State = with.rounds, with.state
	r.Replica = (with.processor/time.Duration(with.rounds) - alone.processor/time.Duration(alone.rounds)) / time.Duration(o.Watchers)
	return r, m.wait()
}

// memory returns what the process has in use.
func memory() uint64 {
	heap := heap()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return heap + m.StackInuse
}

// played is what some rounds took.
type played struct {
	rounds    uint32
	processor time.Duration
	state     int
}

// play plays rounds, each of at least pace.
func (c *chain) play(ctx context.Context, rounds uint32, pace time.Duration) (p played, err error) {
	var last ledger.Snapshot
	var from, round coordinator.Round
	began, processor := time.Now(), processorTime()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return p, context.Cause(ctx)
		case last = <-c.news:
		case <-timer.C:
		}
		if last.Height == 0 {
			continue
		}
		s := last.State
		if now := s.Round(); now != round {
			if from == 0 {
				from = now
			}
			round, began = now, time.Now()
		}
		if uint32(round-from) >= rounds {
			p.rounds, p.processor, p.state = uint32(round-from), processorTime()-processor, len(s.Bytes())
			select {
			case c.news <- last: // the next rounds begin with it
			default: // with a newer one
			}
			return p, nil
		}
		wait := pace - time.Since(began)
		c.members.quiet = s.Phase() == coordinator.RoundTrain && wait > 0
		if c.members.quiet {
			timer.Reset(wait)
		}
		c.members.act(ctx, last)
	}
}

// attached is a process with watchers.
type attached struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// attach starts a process with watchers, and returns when all have the state.
func attach(ctx context.Context, cmd *exec.Cmd) (a attached, err error) {
	a.cmd = cmd
	if a.in, err = cmd.StdinPipe(); err != nil {
		return a, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return a, err
	}
	a.out = bufio.NewScanner(out)
	if err := cmd.Start(); err != nil {
		return a, err
	}
	if !a.out.Scan() {
		return a, errors.Join(errors.New("blocks: the watchers ended before they had the state"), cmd.Wait())
	}
	return a, nil
}

// begin has the watchers measure from now on.
func (a attached) begin() error {
	_, err := fmt.Fprintln(a.in)
	return err
}

// end ends the process and returns what it has measured.
func (a attached) end() (r Attached, err error) {
	a.in.Close()
	if a.out.Scan() {
		err = json.Unmarshal(a.out.Bytes(), &r)
	} else {
		err = errors.New("blocks: the watchers ended without a result")
	}
	return r, errors.Join(err, a.cmd.Wait())
}
