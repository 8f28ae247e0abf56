package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/tui"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/view"
)

// watchOptions are watch's flags.
type watchOptions struct {
	endpoints []string
	state     string
	replay    string
	speed     float64
	plain     bool
}

func watchCommand(c console) *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch [RUN | RUN@HOST | TICKET]",
		Short: "Look at a run, live or from its log",
		Long: `Shows a run in a window: where it stands, its members, rounds, transfers, rewards and log. The bottom
line names the keys; ? explains them. Without a terminal, or with --plain, it prints lines
until the run has finished.

The chain tells who takes part and which results were accepted, and the members themselves tell their
losses, which they sign; the curve is the median of the round's. If a participant has its state directory
on this machine, the window shows its log as well: held-out loss, transfers and the past. --state DIR
names the directory, which knows the run.

--replay shows a past run from such a log, the directory "log" in a state directory or a file of it.`,
		Example: "  entrain watch my-run\n  entrain watch my-run@203.0.113.5 --plain\n" +
			"  entrain watch --replay ./a/log --speed 20",
		Args:              between(0, 1, "one run at most"),
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
	stateFlag(cmd, &o.state, "that of the run on this machine, if there is one")
	f.StringVar(&o.replay, "replay", "", "show the log in this `path`")
	f.Float64Var(&o.speed, "speed", 1, "`factor` by which it is faster than it happened; 0: all at once")
	plainFlag(cmd, &o.plain)
	return cmd
}

// watch shows a run as it continues.
func (c console) watch(ctx context.Context, o watchOptions, to onchain.Target) error {
	var head runlog.Head
	if o.state != "" {
		var err error
		if head, err = participant.LogOf(to.Run, o.state); err != nil {
			return err
		}
		to.Run = head.Name
	}
	if to.Run == "" {
		err := c.connected(ctx, o.endpoints, func(client ledger.Chain) (err error) {
			to.Run, err = onchain.OnlyRun(ctx, client)
			return err
		})
		if err != nil {
			return err
		}
	}
	return c.onRun(ctx, o.endpoints, to, func(client ledger.Chain, on onchain.Run) (err error) {
		if err := participant.SameRun(o.state, head, client.ChainID(), on); err != nil {
			return err
		}
		if found := c.places.OnlyState(to.Run); o.state == "" && found != "" {
			if head, err := participant.Whose(found); err == nil && head.ID == on.Snapshot.State.ID().String() {
				o.state = found // and not of a run of that name on another chain
			}
		}
		var log *runlog.Log
		if o.state != "" {
			if log, err = runlog.Open(filepath.Join(o.state, participant.LogDir)); err != nil {
				return fmt.Errorf("%w; --state names the state directory of a participant", err)
			}
			defer log.Close()
		}
		window := tui.New(c.windowOptions())
		window.NameOps(verify.OpNames(on.Text))
		return c.show(ctx, o.plain, window, true, func(ctx context.Context) error {
			ctx, end := context.WithCancel(ctx)
			defer end()
			go view.KeepNames(ctx, client, window.Called)
			record := func(r runlog.Record) {
				_ = window.Record(r) // never fails
				if s := r.Standing; c.prints(o.plain) && s != nil && s.Phase == coordinator.Finished.String() {
					end()
				}
			}
			return participant.Follow(ctx, client, to.Run, log, record, window.Note)
		})
	})
}

// replay plays a log.
func (c console) replay(ctx context.Context, o watchOptions) error {
	if !(o.speed >= 0 && o.speed <= tui.SpeedMax) {
		return fmt.Errorf("--speed %g: want 0 to %d", o.speed, tui.SpeedMax)
	}
	log, err := runlog.Open(o.replay)
	if err != nil {
		return err
	}
	defer log.Close()
	replay := tui.NewReplay(c.windowOptions(), log, o.speed)
	replay.Window.NameOps(participant.OpNames(o.replay))
	return c.show(ctx, o.plain, replay.Window, true, replay.Play)
}

// prints reports whether lines are printed in place of a window.
func (c console) prints(plain bool) bool { return plain || !c.terminal() }

// show shows a window, or prints lines where there is no terminal.
func (c console) show(ctx context.Context, plain bool, window *tui.Window, stay bool, feed func(context.Context) error) error {
	var lines io.Writer
	if c.prints(plain) {
		lines = c.out
	}
	return window.Show(ctx, lines, stay, feed)
}
