package solana

import (
	"bytes"
	"context"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

const (
	// tickSpread is over how many polls the members of a run spread their ticks, so that one
	// transaction suffices most of the time.
	tickSpread = 4
	// tickAgain is after how many polls a tick is sent again that changed nothing.
	tickAgain = 6
	// ticksInVain is after how many ticks an endpoint is left that shows no change.
	ticksInVain = 3
)

// Watch implements ledger.Reader. While it watches, the ledger ends phases whose time is over: no
// block of Solana does.
func (a *acting) Watch(ctx context.Context, run string, f func(ledger.Snapshot)) {
	news, closing := make(chan ledger.Snapshot, 1), make(chan struct{}, 1)
	a.start(ctx, func(ctx context.Context) { a.tick(ctx, run, news, closing) })
	a.Client.watch(ctx, run, func(s ledger.Snapshot) {
		f(s)
		select {
		case <-news: // an older one that the ticker has not taken
		default:
		}
		news <- s
	}, func() {
		select {
		case closing <- struct{}{}:
		default:
		}
	})
}

// tick sends a Tick whenever one would change the run's newest state. In a closing each does, even
// if others send some at the same time.
func (a *acting) tick(ctx context.Context, run string, news <-chan ledger.Snapshot, closing <-chan struct{}) {
	var last ledger.Snapshot
	vain, closes := 0, false
	wake := time.NewTimer(time.Hour)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case last = <-news:
			vain, closes = 0, false
			wake.Reset(untilDeadline(last) + a.turn(last))
			continue
		case <-closing:
			vain, closes = 0, true
			wake.Reset(a.turn(last) / tickSpread)
			continue
		case <-wake.C:
		}
		next := a.poll
		if height, ms, err := a.now(ctx); err == nil && (closes || due(last, height, ms)) {
			next = tickAgain * a.poll
			if vain++; vain > ticksInVain {
				vain = 0
				a.leave("it shows no change though a phase's time is over")
			}
			a.Submit(ctx, host.ToRun(run, coordinator.Tick{}), func(err error) {
				if err != nil {
					a.log.Debug("ending a phase", "run", run, "err", err)
				}
			})
		}
		wake.Reset(next)
	}
}

// turn returns how long this ledger leaves a tick to others. The order is another one each time.
func (a *acting) turn(s ledger.Snapshot) time.Duration {
	own := a.signer.Address()
	h := wire.Sum("entrain/solana/turn", own[:], wire.AppendU64(nil, s.Height))
	return time.Duration(uint64(tickSpread*a.poll) / 256 * uint64(h[0]))
}

// untilDeadline returns how long after a snapshot time ends the phase. Where a height does, it may
// be at once.
func untilDeadline(s ledger.Snapshot) time.Duration {
	deadline := s.State.Deadline()
	switch {
	case deadline == 0 && s.State.DeadlineHeight() == 0:
		return time.Hour
	case deadline <= s.TimeMs:
		return 0
	}
	return min(time.Hour, time.Duration(deadline-s.TimeMs)*time.Millisecond)
}

// due reports whether a Tick would change a state at a height and a time.
func due(s ledger.Snapshot, height, ms uint64) bool {
	env := coordinator.Env{NowMs: max(s.TimeMs, ms), Height: max(s.Height, height)}
	state, err := coordinator.Attach(bytes.Clone(s.State.Bytes()))
	return err == nil && state.Apply(env, coordinator.Tick{}) == nil && !bytes.Equal(state.Bytes(), s.State.Bytes())
}
