package web

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/spec"
)

// logEvery is how often a participant's log is looked at for something new.
const logEvery = 200 * time.Millisecond

// recordsPerLook is after how many records readLog looks how far it is.
const recordsPerLook = 4096

// follow finds the chain's runs and watches each, until ctx ends.
func (s *Server) follow(ctx context.Context, started *sync.WaitGroup) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		s.look(ctx, started)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
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
		own := ""
		if n := s.node(name); n != nil {
			own = n.Key
		}
		d := newDesk(own)
		s.desks[name] = d
		started.Go(func() { s.watch(ctx, name, d) })
	}
}

// watch brings all there is to know of a run to its desk. The chain itself tells the state at once. A participant's log, which may be long,
// is read beside that; when it has been, it is the past that is shown, and from then on tells what else happens.
func (s *Server) watch(ctx context.Context, name string, d *desk) {
	s.o.Ledger.Spec(ctx, name, func(text []byte, err error) {
		if err != nil {
			s.o.Log.Warn("cannot read the specification of a run", "run", name, "err", err)
			return
		}
		parsed, err := spec.Parse(text)
		if err != nil {
			s.o.Log.Warn("cannot understand the specification of a run", "run", name, "err", err)
			return
		}
		d.specified(text, &parsed)
	})
	s.o.Ledger.Watch(ctx, name, func(snap ledger.Snapshot) { d.observe(snap, time.Now()) })
	n := s.node(name)
	if n == nil || n.Log == "" {
		return
	}
	past := d.recall(n.Key)
	to := past.add
	all := sync.OnceFunc(func() {
		d.recalled()
		to = d.add
	})
	err := readLog(ctx, n.Log, func(r runlog.Record) { to(r) }, d.recalling, all)
	if err != nil && ctx.Err() == nil {
		s.o.Log.Warn("cannot read the participant's log", "run", name, "err", err)
	}
	all()
}

// readLog calls f with every record of the log in a directory, the old ones and, until ctx ends, those that come; end whenever it has
// read all there is; and part now and then with the percentage that it has. A directory that does not exist yet is waited for.
func readLog(ctx context.Context, dir string, f func(runlog.Record), part func(percent int), end func()) error {
	ticker := time.NewTicker(logEvery)
	defer ticker.Stop()
	var log *runlog.Log
	records := 0
	defer func() {
		if log != nil {
			_ = log.Close() // was only read
		}
	}()
	for {
		var err error
		if log == nil {
			if log, err = runlog.Open(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		for log != nil && ctx.Err() == nil {
			r, err := log.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			f(r)
			if records++; records%recordsPerLook == 0 {
				if read, all := log.Progress(); all > 0 {
					part(int(100 * read / all))
				}
			}
		}
		end()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
