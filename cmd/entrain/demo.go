package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/demo"
	"github.com/entrain-network/entrain/engine/vulkan"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/tui"
)

// demoOptions are the demo's flags.
type demoOptions struct {
	demo.Settings
	chain  []string
	keep   string
	s3     string // location of a bucket, or a file with it; "" for the demo's own server
	asJSON bool
	plain  bool
}

func demoCommand(c console) *cobra.Command {
	o := demoOptions{Settings: demo.Default("", demo.Peers, "")}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Train a small Llama with a whole network on this machine",
		Long: `Starts a whole network on this machine, each part a process with its own key and state: one replica
of a chain, and clients that find each other through it, train a small Llama together, and agree on
its parameters, hash for hash, after every round. The text is Newton's Opticks.

Try kill -9 on any of the processes: the run continues, and the demo restarts it.

With --adversary KIND the last client cheats. The others prove it to the chain, and it loses its
stake. docs/security.md describes the kinds:
` + demo.Kinds(demo.Peers) + `

With --exchange bucket results travel through S3 buckets, one for each client, on a server that the
demo starts, or below the location of one that stands there instead of bucket. Rounds are windows of
the chain's height: a client commits to its whole update, and only after the window does the chain
draw the quarter that it must show. Validators recompute some of the updates and score all of them,
and scores determine what a client earns. The cheats of such a run:
` + demo.Kinds(demo.Buckets) + `

With --chain solana the run is on a cluster of Solana in a process, from Python's solders, with the
program of make solana, whose folder ENTRAIN_SOLANA names. docs/chains.md says what differs.

On a terminal a window shows the run; q or Ctrl-C stops everything. With --keep DIR the demo keeps
everything, and the same command continues from there.`,
		Example: `  entrain demo
  entrain demo --clients 6 --rounds 500 --keep ./network
  entrain demo --text novel.txt --json | tail -1
  entrain demo --adversary sign-flip --verification 25
  entrain demo --exchange bucket
  entrain demo --exchange bucket --adversary noise --json | tail -1 | jq .adversary_reward_share
  entrain demo --exchange s3://KEY:SECRET@localhost:9000/demo?tls=0
  entrain demo --chain solana`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags().Changed); err != nil {
				return err
			}
			return c.demo(cmd.Context(), o)
		},
	}
	cmd.AddCommand(demoCheatCommand(c))
	f := cmd.Flags()
	f.IntVar(&o.Clients, "clients", o.Clients, "`number` of clients; with --exchange bucket the default is 6")
	f.StringArrayVar(&o.chain, "chain", nil, "`URL` of what the run is on: solana for a cluster of Solana (default: a replica of entrain's own chain)")
	f.StringVar(&o.Exchange, "exchange", o.Exchange, "`way` in which results travel: peers; bucket, one for each client on the demo's own server; or by the location of\nan S3 bucket in which all clients write, or a file that holds it. Without --keep the demo removes in the end what they wrote")
	f.IntVar(&o.Validators, "validators", 2, "with --exchange bucket: `number` of validators")
	f.DurationVar(&o.Window, "window", time.Second, "with --exchange bucket: window `duration`; results not finished by then are discarded")
	f.Uint32Var(&o.Rounds, "rounds", o.Rounds, "`number` of rounds that train; with --exchange bucket, windows")
	f.StringVar(&o.Text, "text", "", "text `file` to train on (default: Newton's Opticks)")
	f.StringVar(&o.keep, "keep", "", "`directory` in which to keep everything")
	f.StringVar(&o.Preset, "preset", o.Preset, "`name` of the model: nano (1 million parameters), a larger preset, or tiny, for a quick look")
	f.StringVar(&o.Adversary, "adversary", "", "let the last client cheat; `kind` is listed above")
	f.Uint8Var(&o.Verification, "verification", o.Verification, "`percent` of the results that others recompute; with --adversary the default is 25,\nwith --exchange bucket 0: validators score the results")
	deviceFlag(cmd, &o.Device)
	f.Lookup("device").Usage = "`device` on which every second client computes gradients: cpu, vulkan:N (entrain bench --device list) or auto"
	jsonFlag(cmd, &o.asJSON)
	plainFlag(cmd, &o.plain)
	_ = cmd.MarkFlagFilename("text")
	_ = cmd.MarkFlagDirname("keep")
	_ = cmd.RegisterFlagCompletionFunc("adversary", cobra.FixedCompletions(demo.KindNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("exchange", cobra.FixedCompletions([]string{demo.Peers, demo.Buckets}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("preset", cobra.FixedCompletions([]string{"tiny", "nano", "10m", "50m"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// settle fills in defaults and checks the flags.
func (o *demoOptions) settle(given func(flag string) bool) error {
	if len(o.chain) > 0 {
		o.Chain = strings.Join(o.chain, " ")
	}
	if _, missing := os.Stat(o.Exchange); bucket.IsLocation(o.Exchange) || o.Exchange != demo.Peers && o.Exchange != demo.Buckets && missing == nil {
		o.s3, o.Exchange = o.Exchange, demo.Buckets
	}
	kept, err := o.Settle(o.keep, given)
	if err != nil || kept {
		return err
	}
	return vulkan.Check(o.Device)
}

// demo runs the demo and shows it.
func (c console) demo(ctx context.Context, o demoOptions) error {
	opts := demo.Options{Settings: o.Settings, Dir: o.keep, Say: c.tell}
	if o.s3 != "" {
		at, err := demo.Bucket(ctx, o.s3)
		if err != nil {
			return err
		}
		opts.S3 = &at
	}
	var summary demo.Summary
	if o.asJSON {
		opts.Event = func(ev demo.Event) { _ = c.object(ev) }
		summary, err := demo.Run(ctx, opts)
		if err != nil {
			return err
		}
		return errors.Join(c.object(summary), summary.Err())
	}
	window := tui.New(c.windowOptions())
	opts.Record = func(r runlog.Record) { _ = window.Record(r) } // never fails
	opts.Member = window.Name
	var lines io.Writer = c.err // standard output is for the summary
	if !o.plain && c.terminal() {
		lines = nil
		opts.Say = func(text string) {
			opts.Record(runlog.Record{Time: time.Now(), Who: "demo", Event: event.Note{Text: text}})
		}
	}
	err := window.Show(ctx, lines, false, func(ctx context.Context) (err error) {
		summary, err = demo.Run(ctx, opts)
		return err
	})
	if errors.Is(err, tui.ErrClosed) {
		c.say("the demo was stopped early: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(c.out, summary)
	return errors.Join(err, summary.Err())
}

// demoCheatCommand is join for a client of the demo that cheats. The demo alone starts it.
func demoCheatCommand(c console) *cobra.Command {
	var cheat demo.Cheat
	var gang []string
	cmd := &cobra.Command{
		Use: "cheat -- RUN [FLAG OF JOIN]...", Hidden: true,
		Short:   "Take part in a demo as a cheat",
		Long:    "Takes part as entrain join does with what follows --, but cheats.",
		Example: "  entrain demo cheat --adversary sign-flip -- demo --stake 1000",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, s := range gang {
				k, err := key.ParsePublic(s)
				if err != nil {
					return fmt.Errorf("--gang %q: %w", s, err)
				}
				cheat.Gang = append(cheat.Gang, k)
			}
			var o joinOptions
			o.Wrap = cheat.Wrap
			join := joinWith(c, &o)
			join.SilenceUsage, join.SilenceErrors = true, true
			join.SetArgs(args)
			return join.ExecuteContext(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&cheat.Kind, "adversary", "", "cheat in the way of this `kind`")
	f.StringArrayVar(&gang, "gang", nil, "public `key` of one that cheats together with this one; may be repeated")
	return cmd
}
