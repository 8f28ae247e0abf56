package web

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// logEvery is how often the server looks for a participant's log that does not exist yet.
const logEvery = 200 * time.Millisecond

// follow finds the chain's runs and watches each, until ctx ends.
func (s *Server) follow(ctx context.Context, started *sync.WaitGroup) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	var named time.Time
	for {
		s.look(ctx, started)
		if now := time.Now(); now.Sub(named) >= namesEvery {
			named = now
			s.call(ctx)
			s.keep(now)
		}
		select {
		case <-ctx.Done():
			s.keep(time.Now())
			return
		case <-ticker.C:
		}
	}
}

// call asks the chain what keys are called.
func (s *Server) call(ctx context.Context) {
	if s.o.Names == nil {
		return
	}
	asking, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	list, err := s.o.Names(asking)
	if err != nil {
		return // look notes that the chain is silent
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called = view.NewNames(list)
	for _, d := range s.desks {
		d.called(s.called)
	}
}

// look asks the chain for its runs and begins to watch those that are new.
func (s *Server) look(ctx context.Context, started *sync.WaitGroup) {
	asking, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	names, err := s.o.Runs(asking)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reachable = err == nil
	for _, name := range names {
		if s.desks[name] != nil || s.o.Only != "" && s.o.Only != name || len(s.desks) >= host.RunsMax || !host.RunNameValid(name) {
			continue
		}
		d := newDesk()
		d.boot = s.boot
		d.called(s.called)
		s.desks[name] = d
		started.Go(func() { s.watch(ctx, name, d) })
	}
}

// watch brings all there is to know of a run to its desk. The chain itself tells the state at once.
// A participant's log, which may be long, is read beside that; when it has been, it is the past
// that is shown, and from then on tells what else happens.
func (s *Server) watch(ctx context.Context, name string, d *desk) {
	s.o.Ledger.Spec(ctx, name, func(text []byte, err error) {
		if err != nil {
			s.o.Log.Warn("cannot read the specification of a run", "run", name, "err", err)
			return
		}
		parsed, err := spec.Parse(text, all.Kinds())
		if err != nil {
			s.o.Log.Warn("cannot understand the specification of a run", "run", name, "err", err)
			return
		}
		d.specified(text, &parsed)
	})
	n := s.node(name)
	if n == nil || n.Log == "" {
		s.hear(ctx, name, d)
		return
	}
	s.o.Ledger.Watch(ctx, name, func(snap ledger.Snapshot) { d.observe(snap, time.Now()) })
	log, err := openLog(ctx, n.Log)
	if err != nil || log == nil {
		if err != nil {
			s.o.Log.Warn("cannot read the participant's log", "run", name, "err", err)
		}
		return
	}
	defer log.Close()
	to := d.recall().add
	err = log.Follow(ctx, func(r runlog.Record) { to(r) }, func(percent int) {
		if d.recalling(percent); percent == 100 {
			d.recalled()
			to = d.add
		}
	})
	if err != nil {
		s.o.Log.Warn("cannot read the participant's log", "run", name, "err", err)
	}
	d.recalled()
}

// hear watches a run whose participant's log is not at hand: members themselves tell their losses.
func (s *Server) hear(ctx context.Context, name string, d *desk) {
	if s.o.Ear == nil {
		s.o.Ledger.Watch(ctx, name, func(snap ledger.Snapshot) { d.observe(snap, time.Now()) })
		return
	}
	ear := s.o.Ear(name, func(ev event.Committed) { d.add(runlog.Record{Time: time.Now(), Event: ev}) })
	s.o.Ledger.Watch(ctx, name, func(snap ledger.Snapshot) {
		d.observe(snap, time.Now())
		ear.Observe(snap)
	})
	if err := ear.Run(ctx); err != nil && ctx.Err() == nil {
		s.o.Log.Warn("cannot hear the members of a run", "run", name, "err", err)
	}
}

// openLog opens a participant's log, and waits for it to exist. It returns nil when ctx ends
// before.
func openLog(ctx context.Context, dir string) (*runlog.Log, error) {
	ticker := time.NewTicker(logEvery)
	defer ticker.Stop()
	for {
		log, err := runlog.Open(dir)
		if !errors.Is(err, fs.ErrNotExist) {
			return log, err
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-ticker.C:
		}
	}
}
