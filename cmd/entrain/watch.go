package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/tui"
	"github.com/entrain-network/entrain/verify"
)

// watchOptions are watch's flags.
type watchOptions struct {
	endpoints []string
	state     string
	replay    string
	speed     float64
	plain     bool
	noColor   bool
}

func watchCommand(c console) *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch [RUN | RUN@HOST | TICKET]",
		Short: "Look at a run, live or from its log",
		Long: `Shows a run in a window: where it stands, its members, rounds, transfers, rewards and log. The keys are at
the bottom; ? explains them. Without a terminal, or with --plain, it prints lines.

The chain tells who takes part and what was accepted. Losses and transfers are known to participants
only: if one has its state directory on this machine, its log is shown as well.

--replay shows a past run from such a log, the directory "log" in a state directory or a file of it.`,
		Example: "  entrain watch my-run\n  entrain watch my-run@203.0.113.5 --plain\n" +
			"  entrain watch --replay ./a/log --speed 20",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.replay != "" {
				if len(args) > 0 || len(o.endpoints) > 0 || o.state != "" {
					return errors.New("--replay shows what a log holds: leave out RUN, --chain and --state")
				}
				return c.replay(cmd.Context(), o)
			}
			if cmd.Flags().Changed("speed") {
				return errors.New("--speed is for --replay")
			}
			to, err := onchain.ParseTargetOrChain(args, &o.endpoints)
			if err != nil {
				return err
			}
			return c.watch(cmd.Context(), o, to)
		},
	}
	chainFlag(cmd, &o.endpoints)
	f := cmd.Flags()
	f.StringVar(&o.state, "state", "", "state `directory` of a participant on this machine, whose log is shown too (default: that of the run, if there is one)")
	f.StringVar(&o.replay, "replay", "", "show the log in this `path`")
	f.Float64Var(&o.speed, "speed", 1, "how many times faster than it happened; 0: all at once")
	windowFlags(cmd, &o.plain, &o.noColor)
	_ = cmd.MarkFlagDirname("state")
	return cmd
}

// watch shows a run that goes on.
func (c console) watch(ctx context.Context, o watchOptions, to onchain.Target) (err error) {
	client, err := c.dial(ctx, o.endpoints, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	run := to.Run
	if run == "" {
		if run, err = onlyRun(ctx, client); err != nil {
			return err
		}
	}
	snapshot, err := onchain.GetSnapshot(ctx, client, run)
	if err != nil {
		return fmt.Errorf("%w; entrain status shows the runs of a chain", err)
	}
	if err := to.Check(client.ChainID(), snapshot.State.ID()); err != nil {
		return err
	}
	if o.state == "" {
		o.state = c.stateOf(run)
	}
	window := tui.New(c.windowOptions(o.noColor))
	if on, err := onchain.GetRun(ctx, client, run); err == nil {
		window.NameOps(verify.OpNames(on.Text))
	}
	feed := func(ctx context.Context) error {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		return follow(ctx, o.state, window, func() {
			client.Watch(watching, run, func(s ledger.Snapshot) {
				d := runlog.Digest(s)
				d.Chain = client.ChainID()
				_ = window.Record(runlog.Record{Time: time.Now(), Standing: d}) // a window takes everything
			})
		})
	}
	return c.show(ctx, o.plain, window, feed)
}

// onlyRun is the one run of a chain.
func onlyRun(ctx context.Context, client ledger.Chain) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, onchain.Patience)
	defer cancel()
	runs, err := client.Runs(ctx)
	if err != nil {
		return "", err
	}
	if len(runs) == 1 {
		return runs[0].Name, nil
	}
	names := make([]string, len(runs))
	for i, r := range runs {
		names[i] = r.Name
	}
	return "", fmt.Errorf("chain %q has %d runs; say which to watch: %s", client.ChainID(), len(runs), strings.Join(names, ", "))
}

// stateOf is the state directory of the only participation in a run that this user has, "" if there is none or several.
func (c console) stateOf(run string) string {
	if c.places.data == "" {
		return ""
	}
	found, err := filepath.Glob(filepath.Join(c.places.data, "runs", run+"-????????"))
	if err != nil || len(found) != 1 {
		return ""
	}
	return found[0]
}

// followEvery is how often a log that grows is looked at.
const followEvery = 300 * time.Millisecond

// recordsPerNote is after how many records a window says how much of a log was read, if notedBytes are still to come.
const (
	recordsPerNote = 4096
	notedBytes     = 1 << 20
)

// follow gives a window what a participant writes to its log, until ctx ends, and calls then once the window has all of the past: of rounds
// before those that it knows of a window keeps nothing. Without a state directory there is nothing to follow.
func follow(ctx context.Context, state string, window *tui.Window, then func()) error {
	then = sync.OnceFunc(then)
	if state == "" {
		then()
		<-ctx.Done()
		return nil
	}
	log, err := runlog.Open(filepath.Join(state, "log"))
	if err != nil {
		return fmt.Errorf("%w; --state names the state directory of a participant", err)
	}
	defer log.Close()
	timer := time.NewTicker(followEvery)
	defer timer.Stop()
	for records := 1; ; records++ {
		r, err := log.Next()
		switch {
		case err == nil:
			_ = window.Record(r) // a window takes everything
			if read, all := log.Progress(); records%recordsPerNote == 0 && all-read > notedBytes {
				window.Note(fmt.Sprintf("reading the log: %d %%", 100*read/all))
			}
		case errors.Is(err, io.EOF):
			window.Note("")
			then()
			select {
			case <-ctx.Done():
				return nil
			case <-timer.C:
			}
		default:
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// plainEvery is how often lines are printed.
const plainEvery = 2 * time.Second

// show shows a window, or prints lines, until feed returns an error, ctx ends, or the user quits. When feed is done, lines end; a
// window stays to be looked at.
func (c console) show(ctx context.Context, plain bool, window *tui.Window, feed func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fed := make(chan error, 1)
	if plain || !c.terminal() {
		go func() { fed <- feed(ctx) }()
		lines := tui.NewPlain(c.out)
		timer := time.NewTicker(plainEvery)
		defer timer.Stop()
		for {
			select {
			case err := <-fed:
				return errors.Join(err, lines.Show(window.Snapshot()))
			case <-timer.C:
				if err := lines.Show(window.Snapshot()); err != nil {
					cancel()
					return errors.Join(err, <-fed)
				}
			}
		}
	}
	shown, closeWindow := context.WithCancel(ctx)
	defer closeWindow()
	go func() {
		err := feed(ctx)
		fed <- err
		if err != nil {
			closeWindow()
		}
	}()
	err := window.Run(shown)
	if shown.Err() != nil {
		err = nil
	}
	cancel()
	return errors.Join(<-fed, err)
}
