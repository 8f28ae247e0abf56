package solana

import (
	"bytes"
	"context"
	"math/bits"
	"time"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

const (
	// tickStep is how many polls the first members have for a tick, before the next send one, too.
	tickStep = 3
	// tickAgain is after how many polls a tick is sent again that changed nothing. The time doubles
	// with each, tickRarer times at most: an endpoint that shows no change must not cost much.
	tickAgain, tickRarer = 6, 6
	// ticksInVain is after how many ticks an endpoint is left that shows no change.
	ticksInVain = 3
)

// Watch implements ledger.Reader. While it watches, the ledger ends phases whose time is over: no
// block of Solana does.
func (a *acting) Watch(ctx context.Context, run string, f func(ledger.Snapshot)) {
	news, closing := make(chan ledger.Snapshot, 1), make(chan ledger.Snapshot, 1)
	a.start(ctx, func(ctx context.Context) { a.tick(ctx, run, news, closing) })
	tell := func(to chan ledger.Snapshot, s ledger.Snapshot) {
		select {
		case <-to: // an older one that the ticker has not taken
		default:
		}
		to <- s
	}
	a.Client.watch(ctx, run, func(s ledger.Snapshot) {
		f(s)
		tell(news, s)
	}, func(s ledger.Snapshot) { tell(closing, s) })
}

// tick sends a Tick whenever one would change the run's newest state. In a closing each does, even
// if others send some at the same time.
func (a *acting) tick(ctx context.Context, run string, news, closing <-chan ledger.Snapshot) {
	var last ledger.Snapshot
	vain, closes := 0, false
	sent := uint64(0)        // in a closing
	var landed chan struct{} // closed when the tick that is on its way has an outcome; nil: none is
	stop := context.CancelFunc(func() {})
	wake := time.NewTimer(time.Hour)
	defer wake.Stop()
	heard := func(s ledger.Snapshot) { // something has changed: whatever tick did it, none is missing
		stop()
		last, landed, vain = s, nil, 0
	}
	for {
		select {
		case <-ctx.Done():
			stop()
			return
		case s := <-news:
			heard(s)
			closes, sent = false, 0
			wake.Reset(untilDeadline(last) + a.turn(last, 1))
			continue
		case s := <-closing:
			closes = true
			want := closingTicks(s)
			if sent > 2*want { // no closing takes that many
				continue
			}
			heard(s)
			if sent > 0 { // it is this ledger's turn until the closing ends
				wake.Reset(0)
			} else {
				wake.Reset(a.turn(last, want))
			}
			continue
		case <-landed:
			landed = nil
			continue
		case <-wake.C:
		}
		next := a.poll
		if height, ms, err := a.now(ctx); err == nil && landed == nil && (closes || due(last, height, ms)) {
			next = tickAgain * a.poll << min(vain, tickRarer)
			if vain++; vain%ticksInVain == 0 {
				a.leave("it shows no change though a phase's time is over")
			}
			sent++
			var under context.Context
			under, stop = context.WithCancel(ctx)
			outcome := make(chan struct{})
			landed = outcome
			a.Submit(under, host.ToRun(run, coordinator.Tick{}), func(err error) {
				close(outcome)
				if err != nil {
					a.log.Debug("ending a phase", "run", run, "err", err)
				}
			})
		}
		wake.Reset(next)
	}
}

// turn returns how long this ledger leaves the next ticks to others, which want some members: these
// send one at once, as many again a step later, twice as many a step after these, and so on. Then
// it takes few ticks although no member knows which others are there. The phase decides on the
// order.
func (a *acting) turn(s ledger.Snapshot, want uint64) time.Duration {
	rank, n := uint64(0), uint64(s.State.Present())
	h := wire.Sum("entrain/solana/turn", wire.AppendU64(wire.AppendU64(nil, s.State.PhaseSince()), uint64(s.State.Round())))
	r := wire.NewReader(h[:])
	from, own := r.U64()%max(1, n), n // a stranger is the last
	for i := range s.State.Count() {
		if !s.State.Status(i).Present() {
			continue
		}
		if s.State.Key(i) == key.Public(a.signer.Address()) {
			own = rank
		}
		rank++
	}
	if own < n {
		own = (own + n - from) % n
	}
	return tickStep * a.poll * time.Duration(bits.Len64(own/want))
}

// closingTicks returns how many Ticks usually end a round.
func closingTicks(s ledger.Snapshot) uint64 {
	return max(1, solana.Ticks(uint64(s.State.Count()), s.State.Limits(), s.State.Config()))
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
