package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/codec/distro"
	demopkg "github.com/entrain-network/entrain/demo"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/spec"
)

// demoOptions are the demo's flags.
type demoOptions struct {
	clients int
	rounds  uint32
	text    string
	keep    string
	preset  string
	asJSON  bool
	// adversary is the kind of cheat that the last client is, or the last ones; "" for none.
	adversary    string
	verification uint8 // percent of the results that others recompute
	// exchange is how results travel, s3 where the buckets are if not on a server of the demo's own. Windows and validators are of a run by
	// buckets.
	exchange   string
	s3         string
	validators int
	window     time.Duration
}

func demoCommand(c console) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Train a small Llama with a whole network on this machine",
		Long: `Starts a whole network on this machine, each part a process with its own key and state: one replica of a
chain, and clients that find each other through it, train a small Llama together, and agree on its
parameters, hash for hash, after every round. The text is Newton's Opticks, which comes with Go.

Try kill -9 on any of the processes: the run goes on, and the demo starts it again.

With --adversary KIND the last client cheats. The others find it out, prove it to the chain, and it loses its
stake. docs/security.md says more of the kinds:
` + kindList(adversary.Kinds()) + `

With --exchange bucket results travel through S3 buckets, one for each client, on a server that is started
as well, or on the one of --s3. Rounds are windows of the chain's height: a client commits to all of its
update, and only when the window is over does the chain draw the part, a quarter, that it must show.
Validators recompute some of the updates and score them all, and what a client earns follows from its
scores. The cheats of such a run:
` + kindList(adversary.Miners()) + `

Ctrl-C stops everything. With --keep DIR all of it is kept, and the same command goes on from there.`,
		Example: `  entrain demo
  entrain demo --clients 6 --rounds 500 --keep ./network
  entrain demo --data novel.txt --json | tail -1
  entrain demo --adversary sign-flip --verification 25
  entrain demo --exchange bucket
  entrain demo --exchange bucket --adversary noise --json | tail -1 | jq .adversary_reward_share
  entrain demo --exchange bucket --s3 s3://KEY:SECRET@localhost:9000/demo?tls=0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.settle(cmd.Flags().Changed)
			return runDemo(cmd.Context(), c, o, cmd.Flags().Changed)
		},
	}
	cmd.AddCommand(demoCheatCommand(c))
	f := cmd.Flags()
	f.IntVar(&o.clients, "clients", 4, "`number` of clients; with --exchange bucket the default is 6")
	f.StringVar(&o.exchange, "exchange", exchangePeers, "how results travel: `peers` or bucket")
	f.StringVar(&o.s3, "s3", "", "with --exchange bucket: the `location` of an S3 bucket in which all clients write, or a file that holds it;\nwhat they wrote is removed in the end, without --keep (default: the demo's own server, a bucket each)")
	f.IntVar(&o.validators, "validators", demoValidators, "with --exchange bucket: `number` of validators")
	f.DurationVar(&o.window, "window", demoWindow, "with --exchange bucket: `time` of a window; whoever is not done then has worked for nothing")
	f.Uint32Var(&o.rounds, "rounds", demoRounds, "`number` of rounds that train; with --exchange bucket, windows (default then: 300)")
	f.StringVar(&o.text, "data", "", "text `file` to train on (default: Newton's Opticks, from the Go installation)")
	f.StringVar(&o.keep, "keep", "", "`directory` in which everything is kept")
	f.StringVar(&o.preset, "preset", "nano", "model: nano (1 million parameters), a larger preset, or tiny, for a quick look")
	f.StringVar(&o.adversary, "adversary", "", "let the last client cheat in the way of this `kind`")
	f.Uint8Var(&o.verification, "verification", demoVerification, "`percent` of the results that others recompute; with --adversary more unless said")
	f.BoolVar(&o.asJSON, "json", false, "print events, and at the end a summary, as lines of JSON")
	_ = cmd.MarkFlagFilename("data")
	_ = cmd.MarkFlagDirname("keep")
	_ = cmd.RegisterFlagCompletionFunc("adversary", cobra.FixedCompletions(strings.Split(adversary.Names()+", "+adversary.MinerNames(), ", "), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("exchange", cobra.FixedCompletions([]string{exchangePeers, exchangeBucket}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("preset", cobra.FixedCompletions([]string{presetTiny, "nano", "10m", "50m"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

const (
	demoRunName   = "demo"
	demoClientMax = 64
	demoRounds    = 300
	// presetTiny is nano made smaller: it learns next to nothing, quickly.
	presetTiny = "tiny"
	// demoVerification is the percentage of results that are recomputed, adversaryVerification that when there is something to be found
	// within the few rounds that people watch.
	demoVerification, adversaryVerification = 5, 25
	// demoStake is what a client puts up and can lose: all that it has.
	demoStake = 1000
	// demoTreasury is what the run pays its members from, a token a point; demoTokens are all there are.
	demoTreasury, demoTokens = 100_000, 1_000_000
)

// kindList lists kinds of cheats for people.
func kindList(kinds []adversary.Kind) string {
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n  %-16s  ", k.Name)
		column := 0
		for _, word := range strings.Fields(k.Tries) {
			if column += 1 + len(word); column > 88 {
				fmt.Fprintf(&b, "\n  %-16s  ", "")
				column = 1 + len(word)
			} else if column > 1+len(word) {
				b.WriteByte(' ')
			}
			b.WriteString(word)
		}
	}
	return b.String()
}

// cheats is how many of the last clients are adversaries.
func (o demoOptions) cheats() int {
	if o.adversary == "" {
		return 0
	}
	k, _ := o.kind()
	return max(1, k.Gang)
}

// demoSpec is what the demo trains: all its settings that a run's specification can say.
func demoSpec(o demoOptions) spec.Spec {
	s := spec.Default()
	s.Name = demoRunName
	s.Steps = o.rounds
	s.Model.Preset = o.preset
	if o.preset == presetTiny {
		s.Model.Preset, s.Model.Hidden, s.Model.Layers, s.Model.FFN = "nano", 32, 2, 64
		s.Model.Heads, s.Model.KVHeads, s.Model.HeadDim = 2, 1, 16
	}
	s.Data.Sequence = 128
	compressor := distro.Kind().Defaults.(distro.Config)
	compressor.TopK = 32
	s.Optimizer.Options = compressor
	s.LearningRate.Base, s.LearningRate.Final = 2e-3, 2e-4
	s.LearningRate.Warmup = min(20, o.rounds/10)
	s.Batch.Start = 16
	s.Members.Min = 1
	s.Members.Start = uint32(o.clients)
	s.Members.Capacity = 64
	s.Trust = spec.Trust{VerificationPercent: o.verification, Stake: demoStake, Rate: 1}
	// A round takes half a second; whoever is not done after ten times as long was killed, or is starting again. A short epoch makes
	// checkpoints often, to which the run goes back when all processes are killed at once; short warmups let it notice.
	round := 5 * time.Second
	if o.preset != presetTiny && o.preset != "nano" {
		round = 5 * time.Minute
	}
	s.Times = spec.Times{
		Waiting: spec.Duration(0), Warmup: spec.Duration(2 * round), RoundTrain: spec.Duration(round),
		RoundWitness: spec.Duration(time.Second), Cooldown: spec.Duration(round), Epoch: spec.Duration(4 * round),
	}
	if n := o.cheats(); n > 0 {
		// One that was dropped or expelled is not waited for, but in the beginning all shall be there.
		s.Members.Start = uint32(o.clients - n)
		s.Times.Waiting = spec.Duration(2 * time.Second)
	}
	if o.buckets() {
		o.byBuckets(&s)
	}
	if o.verification > 0 {
		// A stake is free when the last result can no longer be checked.
		s.Trust.Verify, s.Trust.Dispute = spec.Duration(3*round), spec.Duration(4*round)
	}
	return s
}

func (o demoOptions) check(given func(flag string) bool) error {
	if err := o.checkExchange(given); err != nil {
		return err
	}
	if o.clients < 1 || o.clients > demoClientMax {
		return fmt.Errorf("--clients %d: want 1 to %d", o.clients, demoClientMax)
	}
	if _, ok := o.kind(); o.adversary != "" && !ok {
		names := adversary.Names()
		if o.buckets() {
			names = adversary.MinerNames()
		}
		return fmt.Errorf("--adversary %q: with --exchange %s the kinds are %s", o.adversary, o.exchange, names)
	}
	if n := o.cheats(); n > 0 && o.clients < n+honestLeast {
		return fmt.Errorf("--clients %d: with %d that cheat there must be %d at least", o.clients, n, n+honestLeast)
	}
	if o.verification > 100 {
		return fmt.Errorf("--verification %d: want 0 to 100", o.verification)
	}
	if o.adversary != "" && o.verification == 0 && !o.buckets() {
		return errors.New("--verification 0: without any, no cheat is found out; leave --adversary out too")
	}
	if o.rounds < 1 {
		return errors.New("--rounds 0: want at least 1")
	}
	if _, err := llama.Preset(o.preset); err != nil && o.preset != presetTiny {
		return fmt.Errorf("--preset: %w", err)
	}
	return nil
}

// honestLeast is how many honest clients it takes to judge another: one that accuses, and one that breaks the tie.
const honestLeast = 2

// runDemo is the demo from beginning to end.
func runDemo(ctx context.Context, c console, o demoOptions, given func(flag string) bool) (err error) {
	if err := o.check(given); err != nil {
		return err
	}
	if o.text == "" {
		if o.text, err = demopkg.Opticks(ctx); err != nil {
			return err
		}
	}
	dir, err := openDemoDir(ctx, c, o, given)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.close()) }()
	if dir.summary != nil {
		c.say("the run kept in %s has finished; for another one choose another directory, or remove this one", dir.path)
		return errors.Join(dir.summary.show(c, o.asJSON), dir.summary.fault())
	}
	d, err := newDemo(c, dir, o.asJSON)
	if err != nil {
		return err
	}
	defer d.close()
	if err := d.run(ctx); err != nil {
		return err
	}
	summary, err := d.conclude(ctx)
	if err != nil {
		return err
	}
	if err := dir.finish(summary); err != nil {
		return err
	}
	return errors.Join(summary.show(c, o.asJSON), summary.fault())
}
