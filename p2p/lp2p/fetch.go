package lp2p

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/retry"
)

// Fetch implements p2p.Network.
func (n *Network) Fetch(ctx context.Context, f p2p.Fetch, done func([]byte, error)) {
	ok := n.start(func() { done(n.fetch(ctx, f)) })
	if !ok {
		go done(nil, p2p.ErrClosed)
	}
}

func (n *Network) fetch(ctx context.Context, f p2p.Fetch) ([]byte, error) {
	ctx, cancel := n.within(ctx)
	defer cancel()
	penalty := f.Penalty
	f.Penalty = func(k key.Public, o p2p.Offence) {
		n.log.Debug("gave a peer up", "peer", k, "offence", o, "blob", f.Ref.Root)
		n.charge(k, o)
		if penalty != nil {
			penalty(k, o)
		}
	}
	f.Self = n.self
	machine, err := p2p.NewDownload(f)
	if err != nil {
		return nil, err
	}
	if n.waiting.Add(1) > fetchesWaiting {
		n.waiting.Add(-1)
		return nil, fmt.Errorf("fetch blob %x: %d fetches are waiting already: %w", f.Ref.Root[:4], fetchesWaiting, errTooMany)
	}
	select {
	case n.fetches <- struct{}{}:
		n.waiting.Add(-1)
	case <-ctx.Done():
		n.waiting.Add(-1)
		machine.Abort(context.Cause(ctx))
		return machine.Result()
	}
	defer func() { <-n.fetches }()
	defer n.source.Begin(machine)()
	d := &fetching{network: n, machine: machine, events: make(chan func())}
	return d.run(ctx)
}

// errTooMany reports too many fetches by this participant; p2p.ErrBusy is about a peer.
var errTooMany = errors.New("too many fetches")

// fetching drives one p2p.Download. Only run's goroutine uses the machine. Each stream has a
// goroutine, which sends events to run.
type fetching struct {
	network *Network
	machine *p2p.Download
	events  chan func()
	open    []*pull
}

// pull is a request in flight.
type pull struct {
	p2p.Request
	last time.Time // time of its last data
	late bool
}

func (d *fetching) run(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel(context.Canceled)
	tick := time.NewTicker(d.network.times.late / 2)
	defer tick.Stop()
	for {
		for _, r := range d.machine.Next() {
			p := &pull{Request: r, last: time.Now()}
			d.open = append(d.open, p)
			streams.Go(func() { d.pull(ctx, p) })
		}
		if d.machine.Done() {
			return d.machine.Result()
		}
		select {
		case event := <-d.events:
			event()
		case now := <-tick.C:
			d.markLate(now)
		case <-ctx.Done():
			d.machine.Abort(context.Cause(ctx))
		}
	}
}

// markLate reports requests to the machine that have brought nothing for lateAfter, whether the
// peer is slow or unreachable.
func (d *fetching) markLate(now time.Time) {
	for _, p := range d.open {
		if !p.late && now.Sub(p.last) >= d.network.times.late {
			p.late = true
			d.machine.Late(p.Request)
		}
	}
}

// tell runs event in run's goroutine and waits for it. It reports false if run has ended.
func (d *fetching) tell(ctx context.Context, event func()) bool {
	done := make(chan struct{})
	select {
	case d.events <- func() { event(); close(done) }:
		<-done
		return true
	case <-ctx.Done():
		return false
	}
}

// pull performs a request.
func (d *fetching) pull(ctx context.Context, p *pull) {
	err := d.network.outward.acquire(ctx, p.To)
	if err == nil {
		err = d.answers(ctx, p)
		d.network.outward.release(p.To)
	}
	d.tell(ctx, func() {
		for i, o := range d.open {
			if o == p {
				d.open = append(d.open[:i], d.open[i+1:]...)
				break
			}
		}
		d.machine.End(p.Request, err)
	})
}

// answers sends a request, again if the peer is busy, and passes on what it receives.
func (d *fetching) answers(ctx context.Context, p *pull) error {
	for wait := busyPause; ; wait *= 2 {
		err := d.attempt(ctx, p)
		if !errors.Is(err, p2p.ErrBusy) || wait > busyPauseMax {
			return err
		}
		if err := retry.Wait(ctx, wait); err != nil {
			return err
		}
	}
}

func (d *fetching) attempt(ctx context.Context, p *pull) error {
	n := d.network
	s, cut, err := n.open(ctx, p.To, blobProtocol)
	if err != nil {
		return err
	}
	defer cut()
	if err := s.SetDeadline(time.Now().Add(n.times.stall)); err != nil {
		return err
	}
	n.traffic.change(p.To, func(b *bothWays, now time.Time) { b.down.Begin(now) })
	defer n.traffic.change(p.To, func(b *bothWays, now time.Time) { b.down.End(now) })
	query := p.Query(n.options.Run)
	if p.Count == 0 {
		b, err := exchange(s, query.Append(nil))
		if err != nil {
			return err
		}
		leaves, err := p2p.ParseLeaves(b)
		if err != nil {
			return err
		}
		d.tell(ctx, func() { d.machine.Leaves(p.Request, leaves) })
		return nil
	}
	if _, err := s.Write(query.Append(nil)); err != nil {
		return readError(err)
	}
	if err := s.CloseWrite(); err != nil {
		return readError(err)
	}
	buffer := make([]byte, merkle.ChunkBytes)
	for i := p.From; i < p.From+p.Count; i++ {
		if err := s.SetReadDeadline(time.Now().Add(n.times.stall)); err != nil {
			return err
		}
		b, err := readAnswer(s, buffer, merkle.ChunkBytes)
		if err != nil {
			return err
		}
		n.traffic.change(p.To, func(t *bothWays, now time.Time) { t.down.Move(len(b), now) })
		chunk, err := p.Verify(i, b)
		if err != nil {
			return err
		}
		more := false
		d.tell(ctx, func() {
			p.last, p.late = time.Now(), false
			more = d.machine.Chunk(p.Request, chunk)
		})
		if !more {
			return nil
		}
	}
	return nil
}
