// Package audit computes again what members of a run committed to, and compares hash for hash. It
// believes the chain and nothing else: parameters and optimizer states come from members or from an
// archive, and every byte of them is checked.
package audit

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/retry"
)

// patience is the time that members have to answer.
const patience = 30 * time.Second

// Options say what is audited, and how.
type Options struct {
	// Fetching names the run, and gets its data and the model of adapters.
	participant.Fetching

	Round     coordinator.Round // 0: the newest that can be audited
	Member    string            // its number or the beginning of its key; "": all that had a share
	Data      string            // directory or addresses of the data; "": as the specification says
	From      string            // as in Fetching.Origin
	Workers   int
	Device    string             // that computes instead of the workers: see trainer.Machine
	Tell      func(text string)  // told why it is not used
	Watch     bool               // audits one result of each round, drawn at random
	Archive   string             // directory; "": none
	KeepBytes uint64             // of the archive
	Report    func(Report) error // takes the outcome of each result
}

// Tally counts results by the outcome of their audits.
type Tally struct{ Equal, Different, NotAudited int }

func (t *Tally) add(verdict string) {
	switch verdict {
	case Equal:
		t.Equal++
	case Different:
		t.Different++
	default:
		t.NotAudited++
	}
}

// String returns the counts in words.
func (t Tally) String() string {
	return fmt.Sprintf("%d results are right, %d are not, %d could not be audited", t.Equal, t.Different, t.NotAudited)
}

// Run audits the results of one round, or with Watch one result of each round until ctx ends or the
// run has finished. The error is why nothing could be audited.
func Run(ctx context.Context, o Options) (_ Tally, err error) {
	if o.Report == nil {
		o.Report = func(Report) error { return nil }
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	a, err := newAuditor(ctx, o)
	if err != nil {
		return Tally{}, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if a.archived != nil {
		return a.fromArchive(ctx)
	}
	if o.Watch {
		if err := a.contact(ctx, 0); err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return a.tally, err
		}
		return a.watch(ctx)
	}
	if err := a.contact(ctx, patience); err != nil {
		return Tally{}, err
	}
	for began := time.Now(); ; {
		r, members, err := a.choose(a.state(), o)
		if err != nil {
			// Of the windows that the chain knows, none may be final and agreed yet.
			if a.buckets != nil && o.Round == 0 && time.Since(began) < patience && retry.Wait(ctx, auditAskEvery) == nil {
				continue
			}
			return Tally{}, err
		}
		// Members serve their states only for a while, so these are fetched first, as many as fit.
		ahead := max(1, auditAheadBytes/max(1, 4*a.trainer.Engine.StateLen()))
		if a.buckets != nil {
			ahead = len(members) // they have one model in common, and no states
		}
		for from := 0; from < len(members); from += ahead {
			var all []*inputs
			late := true
			a.hear(ctx, r, members[from:min(from+ahead, len(members))]...)
			for _, m := range members[from:min(from+ahead, len(members))] {
				in := a.gather(ctx, r, m)
				late = late && in.report.Verdict == NotAudited
				all = append(all, in)
			}
			if late && o.Round == 0 && from == 0 && time.Since(began) < patience && ctx.Err() == nil {
				break // the run was faster: take the round that is the newest now
			}
			for _, in := range all {
				if err := a.one(ctx, in); err != nil {
					return a.tally, err
				}
			}
		}
		if a.tally != (Tally{}) || ctx.Err() != nil {
			return a.tally, nil
		}
	}
}

// auditAheadBytes bounds the optimizer states that are fetched ahead.
const auditAheadBytes = 1 << 30

// choose returns the round and the members to audit.
func (a *auditor) choose(s coordinator.State, o Options) (coordinator.RoundState, []coordinator.Member, error) {
	if o.Round != 0 {
		r, ok := s.At(o.Round)
		if !ok {
			return r, nil, fmt.Errorf("round %d is too old: the chain knows the shares of the last rounds alone, and the run is in round %d; audit a newer one, or the run as it goes on, with --watch", o.Round, s.Round())
		}
		if why := obstacle(r); why != "" {
			return r, nil, fmt.Errorf("round %d %s", o.Round, why)
		}
		members, err := chooseMembers(s, r, o.Member)
		return r, members, err
	}
	for number := s.Round(); number > 0; number-- {
		r, ok := s.At(number)
		if !ok {
			break
		}
		if obstacle(r) == "" {
			members, err := chooseMembers(s, r, o.Member)
			return r, members, err
		}
	}
	return coordinator.RoundState{}, nil, fmt.Errorf("run %q has no round to audit yet: it is in phase %s, round %d; --watch waits for one", a.run, s.Phase(), s.Round())
}

// obstacle returns why a round cannot be audited, or "".
func obstacle(r coordinator.RoundState) string {
	_, agreed := r.Agreed()
	switch {
	case !r.Trains():
		return "is a drain round: nobody trained in it"
	case !r.Final():
		return "is not over: what counts of it is not settled"
	case !agreed:
		return "has no agreed parameters at its start: what its members began with is not known"
	}
	return ""
}

// chooseMembers returns the members with a share in a round, or the one that is named.
func chooseMembers(s coordinator.State, r coordinator.RoundState, name string) ([]coordinator.Member, error) {
	list := named(s, name)
	list = slices.DeleteFunc(list, func(i coordinator.Member) bool { return !r.Expected(i) })
	switch {
	case len(list) == 0:
		return nil, fmt.Errorf("no member %q had a share in round %d; entrain status shows the members", name, r.Number())
	case name != "" && len(list) > 1:
		return nil, fmt.Errorf("%d members have keys that begin with %q", len(list), name)
	}
	return list, nil
}

// FindMember returns the member with a number or with a key that begins with the name.
func FindMember(s coordinator.State, name string) (coordinator.Member, error) {
	list := named(s, name)
	switch {
	case len(list) == 0 || name == "":
		return 0, fmt.Errorf("there is no member %q; entrain status shows the members, and a key needs at least %d digits", name, memberPrefixMin)
	case len(list) > 1:
		return 0, fmt.Errorf("%d members have keys that begin with %q", len(list), name)
	}
	return list[0], nil
}

// memberPrefixMin is the least length of the beginning of a key that names a member; a shorter one
// could be a number.
const memberPrefixMin = 8

// named returns the members that a name may mean: all if it is "".
func named(s coordinator.State, name string) (list []coordinator.Member) {
	for i := range s.Count() {
		if name == "" || name == fmt.Sprint(i) || len(name) >= memberPrefixMin && strings.HasPrefix(s.Key(i).String(), name) {
			list = append(list, i)
		}
	}
	return list
}

// one computes a result again, reports and counts the outcome.
func (a *auditor) one(ctx context.Context, in *inputs) error {
	began := time.Now()
	report := a.compute(ctx, in)
	report.Seconds = time.Since(began).Seconds()
	if ctx.Err() != nil {
		return nil // the audit was cut short
	}
	a.tally.add(report.Verdict)
	return a.options.Report(report)
}

// watch audits results until ctx ends or the run has finished.
func (a *auditor) watch(ctx context.Context) (Tally, error) {
	last := coordinator.Round(0)
	for {
		s := a.state()
		var next coordinator.RoundState
		found := false
		for number := s.Round(); number > last && !found; number-- {
			r, ok := s.At(number)
			if !ok {
				break
			}
			if obstacle(r) == "" && r.AcceptedCount() > 0 {
				next, found = r, true
			}
		}
		if found {
			last = next.Number()
			if err := a.goAlong(ctx, s, next); err != nil {
				return a.tally, err
			}
			continue
		}
		if s.Phase() == coordinator.Finished {
			return a.tally, nil
		}
		if !a.news(ctx) {
			return a.tally, nil
		}
	}
}

// goAlong audits a result of a round, drawn at random, and keeps all of them if there is an
// archive.
func (a *auditor) goAlong(ctx context.Context, s coordinator.State, r coordinator.RoundState) error {
	drawn := drawAccepted(s, r)
	a.hear(ctx, r, drawn)
	first := a.gather(ctx, r, drawn)
	if a.options.Archive != "" {
		all := []*inputs{first}
		for i := range s.Count() {
			if i != drawn && r.Expected(i) && ctx.Err() == nil {
				all = append(all, a.gather(ctx, r, i))
			}
		}
		if err := keepArchived(a.options.Archive, s, r.Number(), all, int64(min(a.options.KeepBytes, 1<<62))); err != nil {
			return err
		}
	}
	return a.one(ctx, first)
}

// fromArchive audits results of a round in the archive.
func (a *auditor) fromArchive(ctx context.Context) (Tally, error) {
	o := a.options
	o.Round = a.archivedAt
	r, members, err := a.choose(a.state(), o)
	if err != nil {
		return Tally{}, err
	}
	for _, m := range members {
		if len(commitmentsOf(a.archived, r.Number(), m)) == 0 && o.Member == "" {
			continue // it was not there to be kept
		}
		if err := a.one(ctx, a.gather(ctx, r, m)); err != nil {
			return a.tally, err
		}
	}
	return a.tally, nil
}

// drawAccepted draws one of the members whose result of a round counts. Nobody can predict the
// draw, and each is as likely.
func drawAccepted(s coordinator.State, r coordinator.RoundState) coordinator.Member {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	k := binary.LittleEndian.Uint64(b[:]) % uint64(r.AcceptedCount())
	for i := range s.Count() {
		if !r.Accepted(i) {
			continue
		}
		if k == 0 {
			return i
		}
		k--
	}
	panic("entrain: a round has fewer accepted results than it says")
}

// latest is the newest state of a run, kept by a watch of the chain.
type latest struct {
	mu   sync.Mutex // guards s
	s    ledger.Snapshot
	wake chan struct{} // holds a token when s is new
}

func (l *latest) set(s ledger.Snapshot) {
	l.mu.Lock()
	l.s = s
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *latest) state() coordinator.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.s.State
}

// news waits for a newer state. It returns false if ctx ends first.
func (l *latest) news(ctx context.Context) bool {
	select {
	case <-l.wake:
		return true
	case <-ctx.Done():
		return false
	}
}
