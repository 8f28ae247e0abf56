package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
)

// auditOptions are audit's flags.
type auditOptions struct {
	to        onchain.Target
	endpoints []string
	round     uint32 // 0: the newest that can be audited
	member    string // "" means all that had a share
	data      string
	workers   int
	listen    []string
	patience  time.Duration
	watch     bool
	archive   string // directory; "" means none
	keepBytes uint64 // of the archive
	asJSON    bool
}

func auditCommand(c console) *cobra.Command {
	var o auditOptions
	cmd := &cobra.Command{
		Use:   "audit RUN | RUN@HOST | TICKET",
		Short: "Compute what members did again, and compare hash for hash",
		Long: `Takes what members of a run committed to in a round, and computes it again: from the parameters that the run
had agreed on, the optimizer state that the member had committed to before, and the sequences that the
round's seed gave it. Shows each hash that was claimed and what comes out. Nothing has to be believed but
the chain; parameters and states come from the members, and each of their bytes is checked.

Members serve what an audit takes until checks of the round are drawn, which is a round or two later, and
longer where one is; in a run that has nothing checked they need not. --watch goes along with a run and
audits one result after another, drawn at random, until Ctrl-C. With --archive it also keeps what an audit of
any result of those rounds takes; without --watch, --archive audits from there instead of asking members.

The exit status is 0 if all that was audited is right, 1 if something is not, and 2 if nothing could be
audited, with the reason.`,
		Example: "  entrain audit my-run\n  entrain audit my-run --round 120 --member 3 --json\n" +
			"  entrain audit my-run@203.0.113.5 --watch --data ./corpus\n" +
			"  entrain audit my-run --watch --archive ./rounds\n  entrain audit my-run --archive ./rounds --round 120",
		Args:              needTarget,
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.workers < 1 || o.workers > workersMax {
				return fmt.Errorf("--workers %d: want 1 to %d", o.workers, workersMax)
			}
			if o.watch && (o.round != 0 || o.member != "") {
				return errors.New("--watch draws round and member: leave out --round and --member")
			}
			var err error
			if o.to, err = onchain.ParseTarget(args[0], &o.endpoints); err != nil {
				return err
			}
			if o.data == "" && o.to.Ticket != nil {
				o.data = o.to.Ticket.Data
			}
			return c.audit(cmd.Context(), o, o.to.Run)
		},
	}
	chainFlag(cmd, &o.endpoints)
	f := cmd.Flags()
	f.Uint32Var(&o.round, "round", 0, "`round` to audit (default: the newest that can be)")
	f.StringVar(&o.member, "member", "", "`member` to audit, by its number or the beginning of its key (default: all that had a share)")
	f.BoolVar(&o.watch, "watch", false, "go along with the run and audit at random, until Ctrl-C")
	f.StringVar(&o.archive, "archive", "", "`directory` in which --watch keeps rounds, or from which they are audited")
	f.Uint64Var(&o.keepBytes, "archive-bytes", 8<<30, "remove the oldest rounds of the archive when it has more `bytes`")
	f.StringVar(&o.data, "data", "", "`directory` of the prepared data (default: as the run's specification says)")
	f.IntVar(&o.workers, "workers", defaultWorkers(), "`number` of goroutines that compute; changes the speed, never the result")
	f.StringArrayVar(&o.listen, "listen", nil, "`address` for peers, as in join")
	f.DurationVar(&o.patience, "patience", 30*time.Second, "how long to wait for members to answer")
	f.BoolVar(&o.asJSON, "json", false, "print a JSON object for each result")
	_ = cmd.MarkFlagDirname("data")
	_ = cmd.MarkFlagDirname("archive")
	return cmd
}

// Exit statuses of audit.
const (
	exitDifferent  = 1
	exitNotAudited = 2
)

// exitError is an error that ends the process with a status of its own.
type exitError struct {
	error
	status int
}

// Unwrap is the error.
func (e exitError) Unwrap() error { return e.error }

// audit audits one round, or whatever comes.
func (c console) audit(ctx context.Context, o auditOptions, run string) (err error) {
	o.endpoints = c.endpoints(o.endpoints)
	a, err := c.newAuditor(ctx, o, run)
	if err != nil {
		return exitError{err, exitNotAudited}
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if a.archived != nil {
		return a.fromArchive(ctx)
	}
	if o.watch {
		if err := a.contact(ctx, 0); err != nil {
			return a.verdict()
		}
		return a.watch(ctx)
	}
	if err := a.contact(ctx, o.patience); err != nil {
		return exitError{err, exitNotAudited}
	}
	for began := time.Now(); ; {
		r, members, err := a.choose(a.state(), o)
		if err != nil {
			return exitError{err, exitNotAudited}
		}
		// What members serve for a while only is fetched first, as much as there is room for.
		ahead := max(1, auditAheadBytes/max(1, 4*a.trainer.Engine.StateLen()))
		for from := 0; from < len(members); from += ahead {
			var all []*inputs
			late := true
			for _, m := range members[from:min(from+ahead, len(members))] {
				in := a.gather(ctx, r, m)
				late = late && in.report.Verdict == auditNot
				all = append(all, in)
			}
			if late && o.round == 0 && from == 0 && time.Since(began) < o.patience && ctx.Err() == nil {
				break // the run was faster: take the round that is the newest now
			}
			for _, in := range all {
				if err := a.one(ctx, in); err != nil {
					return err
				}
			}
		}
		if len(a.tally) > 0 || ctx.Err() != nil {
			return a.verdict()
		}
	}
}

// auditAheadBytes is for how many bytes of optimizer states there is room.
const auditAheadBytes = 1 << 30

// choose finds the round and the members that the flags name.
func (a *auditor) choose(s coordinator.State, o auditOptions) (coordinator.Round, []uint32, error) {
	if o.round != 0 {
		r, ok := s.At(o.round)
		if !ok {
			return r, nil, fmt.Errorf("round %d is not among the last ones, which the chain knows the shares of; the run is in round %d: audit it as it goes on, with --watch", o.round, s.Round())
		}
		if why := unripe(r); why != "" {
			return r, nil, fmt.Errorf("round %d %s", o.round, why)
		}
		members, err := chooseMembers(s, r, o.member)
		return r, members, err
	}
	for number := s.Round(); number > 0; number-- {
		r, ok := s.At(number)
		if !ok {
			break
		}
		if unripe(r) == "" {
			members, err := chooseMembers(s, r, o.member)
			return r, members, err
		}
	}
	return coordinator.Round{}, nil, fmt.Errorf("run %q has no round to audit yet: it is in phase %s, round %d; --watch waits for one", a.run, s.Phase(), s.Round())
}

// unripe says why a round cannot be audited, "" if it can.
func unripe(r coordinator.Round) string {
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

// chooseMembers are those with a share in a round, or the one that a flag names.
func chooseMembers(s coordinator.State, r coordinator.Round, flag string) ([]uint32, error) {
	var list []uint32
	for i := range s.Count() {
		if r.Expected(i) && (flag == "" || flag == fmt.Sprint(i) || len(flag) >= memberPrefixMin && strings.HasPrefix(s.Key(i).String(), flag)) {
			list = append(list, i)
		}
	}
	switch {
	case len(list) == 0:
		return nil, fmt.Errorf("no member %q had a share in round %d; entrain status shows the members", flag, r.Number())
	case flag != "" && len(list) > 1:
		return nil, fmt.Errorf("%d members have keys that begin with %q", len(list), flag)
	}
	return list, nil
}

// memberPrefixMin is how much of a key names a member: less would be taken for a number.
const memberPrefixMin = 8

// one computes a result, shows and counts what came of it.
func (a *auditor) one(ctx context.Context, in *inputs) error {
	began := time.Now()
	report := a.compute(ctx, in)
	report.Seconds = time.Since(began).Seconds()
	if ctx.Err() != nil {
		return nil // what was cut short says nothing
	}
	a.tally[report.Verdict]++
	if a.asJSON {
		return a.object(report)
	}
	return report.write(a.out, a.options.watch && report.Verdict == auditEqual)
}

// verdict is the end of an audit.
func (a *auditor) verdict() error {
	equal, different, not := a.tally[auditEqual], a.tally[auditDifferent], a.tally[auditNot]
	text := fmt.Sprintf("%d results are right, %d are not, %d could not be audited", equal, different, not)
	switch {
	case different > 0:
		return exitError{errors.New(text), exitDifferent}
	case equal == 0:
		return exitError{errors.New(text), exitNotAudited}
	}
	if !a.asJSON {
		a.say("%s", text)
	}
	return nil
}

// watch audits results of a run that goes on until ctx ends or the run has finished.
func (a *auditor) watch(ctx context.Context) error {
	last := uint32(0)
	for {
		s := a.state()
		var next coordinator.Round
		found := false
		for number := s.Round(); number > last && !found; number-- {
			r, ok := s.At(number)
			if !ok {
				break
			}
			if unripe(r) == "" && r.AcceptedCount() > 0 {
				next, found = r, true
			}
		}
		if found {
			last = next.Number()
			if err := a.goAlong(ctx, s, next); err != nil {
				return err
			}
			continue
		}
		if s.Phase() == coordinator.Finished {
			return a.verdict()
		}
		if !a.news(ctx) {
			return a.verdict()
		}
	}
}

// goAlong audits a result of a round, drawn at random, and keeps all of them if there is an archive.
func (a *auditor) goAlong(ctx context.Context, s coordinator.State, r coordinator.Round) error {
	drawn := drawAccepted(s, r)
	first := a.gather(ctx, r, drawn)
	if a.options.archive != "" {
		all := []*inputs{first}
		for i := range s.Count() {
			if i != drawn && r.Expected(i) && ctx.Err() == nil {
				all = append(all, a.gather(ctx, r, i))
			}
		}
		if err := keepArchived(a.options.archive, s, r.Number(), all, int64(min(a.options.keepBytes, 1<<62))); err != nil {
			return err
		}
	}
	return a.one(ctx, first)
}

// fromArchive audits results of a round that was kept.
func (a *auditor) fromArchive(ctx context.Context) error {
	o := a.options
	o.round = a.archivedAt
	r, members, err := a.choose(a.state(), o)
	if err != nil {
		return exitError{err, exitNotAudited}
	}
	for _, m := range members {
		if len(commitmentsOf(a.archived, r.Number(), m)) == 0 && o.member == "" {
			continue // it was not there to be kept
		}
		if err := a.one(ctx, a.gather(ctx, r, m)); err != nil {
			return err
		}
	}
	return a.verdict()
}

// drawAccepted is one of the members whose result of a round counts, each as likely, by a draw that nobody foresees.
func drawAccepted(s coordinator.State, r coordinator.Round) uint32 {
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

// latest is the newest state of a run, kept by a watch of the ledger.
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

// news waits for a newer state; it is false when ctx ends first.
func (l *latest) news(ctx context.Context) bool {
	select {
	case <-l.wake:
		return true
	case <-ctx.Done():
		return false
	}
}
