package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/audit"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/serve"
)

func auditCommand(c console) *cobra.Command {
	var o audit.Options
	var answer string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit RUN | RUN@HOST | TICKET | CHECKPOINT --answer FILE",
		Short: "Recompute members' results, or a model's answers, and compare",
		Long: `Recomputes what members of a run committed to in a round, from the agreed parameters, the member's
earlier committed optimizer state, and the sequences that the round's seed assigned. It shows each
claimed hash with the computed one. Only the chain has to be trusted: parameters and states come
from the members, and every byte is checked.

Members serve what an audit needs until the round's checks are drawn, a round or two later, and longer while
a check is open; in a run without checks they need not. --watch follows the run and audits results at random
until Ctrl-C. With --archive it also stores what later audits of those rounds need. Without --watch, --archive
audits from the archive. Of runs by buckets the gradient is compared, not the update; they are not archived.

--answer reads a receipt, or answers with theirs, as entrain model serve --receipts gave them, computes each
answer again with the model of CHECKPOINT, a directory or an address, and prints its text.

The exit status is 0 if everything audited is right, 1 if something is wrong, and 2 if nothing could
be audited.`,
		Example: "  entrain audit my-run\n  entrain audit my-run --round 120 --member 3 --json\n" +
			"  entrain audit my-run@203.0.113.5 --watch --data ./corpus\n" +
			"  entrain audit my-run --watch --archive ./rounds\n  entrain audit my-run --archive ./rounds --round 120\n" +
			"  entrain audit ./checkpoint --answer answer.json",
		Args:              needTarget,
		ValidArgsFunction: c.completeRuns, SuggestFor: []string{"verify"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if answer != "" {
				return c.auditAnswers(cmd.Context(), args[0], answer, o.Device)
			}
			if err := participant.CheckMachine(o.Workers, o.Device); err != nil {
				return err
			}
			if o.Watch && (o.Round != 0 || o.Member != "") {
				return errors.New("--watch draws round and member: leave out --round and --member")
			}
			var err error
			if o.Target, err = onchain.ParseTarget(args[0], &o.Endpoints); err != nil {
				return err
			}
			if o.Data == "" && o.Target.Ticket != nil {
				o.Data = o.Target.Ticket.Data
			}
			return c.audit(cmd.Context(), o, asJSON)
		},
	}
	chainFlag(cmd, &o.Endpoints)
	f := cmd.Flags()
	f.Uint32Var((*uint32)(&o.Round), "round", 0, "`round` to audit (default: the newest that can be)")
	f.StringVar(&o.Member, "member", "", "`member` to audit, by its number or the beginning of its key (default: all that had a share)")
	f.StringVar(&answer, "answer", "", "`file` with receipts or answers of a model to compute again")
	f.BoolVar(&o.Watch, "watch", false, "go along with the run and audit at random, until Ctrl-C")
	f.StringVar(&o.Archive, "archive", "", "`directory` in which --watch keeps rounds, or from which they are audited")
	f.Uint64Var(&o.KeepBytes, "archive-bytes", 8<<30, "remove the oldest rounds of the archive when it has more `bytes`")
	dataFlag(cmd, &o.Data)
	fromFlag(cmd, &o.From)
	workersFlag(cmd, &o.Workers)
	deviceFlag(cmd, &o.Device)
	jsonFlag(cmd, &asJSON)
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

// audit audits as the flags say, and prints what comes of it.
func (c console) audit(ctx context.Context, o audit.Options, asJSON bool) error {
	var err error
	o.Fetcher = model.Fetcher{Getenv: c.env, Progress: c.progress(), Say: c.say}
	o.Cache, _ = c.places.Checkpoints(c.env) // without a cache it refuses
	o.Endpoints, o.Remember = c.endpoints(o.Endpoints), c.remembered()
	o.Tell = c.tell
	if o.Kept, err = c.places.Chunks(c.env, o.Tell); err != nil {
		return exitError{err, exitNotAudited}
	}
	o.Report = func(r audit.Report) error {
		if asJSON {
			return c.object(r)
		}
		return r.Write(c.out, o.Watch && r.Verdict == audit.Equal)
	}
	t, err := audit.Run(ctx, o)
	if err != nil {
		return exitError{err, exitNotAudited}
	}
	if err := auditOutcome(t); err != nil {
		return err
	}
	if !asJSON {
		c.say("%s", t)
	}
	return nil
}

// auditOutcome returns the error with which an audit ends, nil if all is right.
func auditOutcome(t audit.Tally) error {
	switch {
	case t.Different > 0:
		return exitError{errors.New(t.String()), exitDifferent}
	case t.Equal == 0:
		return exitError{errors.New(t.String()), exitNotAudited}
	}
	return nil
}

// auditAnswers computes the answers of a model again, and prints them.
func (c console) auditAnswers(ctx context.Context, checkpoint, file, device string) error {
	unaudited := func(err error) error { return exitError{err, exitNotAudited} }
	receipts, err := serve.ReadReceipts(file)
	if err != nil {
		return unaudited(err)
	}
	m, release, err := checkpointSource{}.open(ctx, c, checkpoint, model.Machine{Device: device})
	if err != nil {
		return unaudited(err)
	}
	defer release()
	for _, r := range receipts {
		asked, text, err := m.VerifyStated(ctx, r)
		if errors.Is(err, serve.ErrAnswer) {
			return err
		}
		if err != nil {
			return unaudited(err)
		}
		c.say("to %q the model gives this answer, every one of its %d tokens:", asked, len(r.Tokens))
		fmt.Fprintln(c.out, text)
	}
	return nil
}
