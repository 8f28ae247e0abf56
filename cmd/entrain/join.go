package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/view"
)

func joinCommand(c console) *cobra.Command { return joinWith(c, &joinOptions{}) }

// joinWith is joinCommand with options that the caller keeps.
func joinWith(c console, o *joinOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "join RUN | RUN@HOST | TICKET",
		Short: "Take part in a run",
		Long: `Takes part in a run until it finishes, or until Ctrl-C or SIGTERM. The first signal leaves cleanly
and loses nothing; a second one stops at once. The next call continues from the state directory, or
from the peers' model, every byte of which is checked against the hash that the chain agreed on.

First it checks the run's specification and data against the chain, and this machine's arithmetic:
results must equal everyone else's to the last bit.

RUN is a name on the chain of --chain; RUN@HOST or RUN@HOST:PORT, where HOST is a replica of the
chain; or a ticket or a file that holds one (entrain run ticket). With a ticket, join refuses any
other chain, and any other run of the same name.

In a run that exchanges by buckets you are a miner and need an S3 bucket: one location with which
you write, and one with which others read, which is announced on the chain. join tests both first.

A key takes part in one place. If another process uses it already, join ends with an error that says
where. Without its state directory, or with an older backup, join leaves out the open round.

Where nobody who is online holds the run's model, join says so from time to time, and waits. With --from
DIR you bring it: a checkpoint of the parameters that the run agreed on last, or of its last checkpoint.

With --check it makes your key, if there is none, and nothing else. It reports whether this machine and
this key can take part now, or each obstacle and how to remove it: the run is finished, paused or full;
stake is missing; the key was ejected; the data or the bucket cannot be read; the model needs more
memory; the clock is wrong.
The exit status is 0 for yes and 1 for no. Without RUN, --check tests only the bucket.

No port needs to be open. On a terminal a window shows the run.
The state directory records what happens, for entrain watch and other tools.`,
		Example: `  entrain join my-run --check --data ./corpus
  entrain join my-run --data ./corpus
  entrain join my-run@chain.example.org --data ./corpus --workers 4
  entrain join my-run.ticket
  entrain join my-run --device auto
  entrain join my-run.ticket --limit-cores 4 --limit-memory 8GB --limit-upload 2MB
  entrain join my-run --data ./corpus --stake 5000
  entrain join --check --bucket mine.write --bucket-read mine.read
  entrain join my-run --bucket mine.write --bucket-read mine.read
  entrain join my-run --data ./corpus --json | jq -c 'select(.event == "trained")'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.checks && len(args) == 0 {
				return nil
			}
			return needTarget(cmd, args)
		},
		ValidArgsFunction: c.completeRuns, SuggestFor: []string{"can-join", "check"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.checkBucket(cmd.Context(), o.Mining, o.asJSON)
			}
			var err error
			if o.Target, err = onchain.ParseTarget(args[0], &o.Endpoints); err != nil {
				return err
			}
			if o.checks {
				return c.checkJoin(cmd.Context(), *o)
			}
			if o.Look.Tasks, err = c.taskFiles(cmd.Context(), o.Look.Tasks); err != nil {
				return err
			}
			return c.join(cmd.Context(), *o)
		},
	}
	o.joinFlags(cmd)
	cmd.SetUsageFunc(usageByGroup)
	return cmd
}

// joinFlags adds join's flags.
func (o *joinOptions) joinFlags(cmd *cobra.Command) {
	keyFlag(cmd, &o.keyFile)
	chainFlag(cmd, &o.Endpoints)
	f := cmd.Flags()
	f.BoolVar(&o.checks, "check", false, "only check whether this machine and key can take part")
	dataFlag(cmd, &o.Data)
	fromFlag(cmd, &o.From)
	stateFlag(cmd, &o.State, "in the user's directory for data")
	workersFlag(cmd, &o.Workers)
	deviceFlag(cmd, &o.Device)
	f.IntVar(&o.cores, "limit-cores", 0, "use at most this `number` of cores, also for all that is not computing (default: all)")
	f.Var((*view.ByteCount)(&o.Memory), "limit-memory", "limit memory to this many `bytes`, such as 8GB; a run that needs more is refused at once (default: what is free)")
	f.Var((*view.ByteCount)(&o.Upload), "limit-upload", "serve results, models and data of checks to peers with at most this many `bytes` a second, such as 2MB (default: no limit)")
	f.Uint32Var(&o.Evaluate, "evaluate", 0, "measure the held-out loss after every `N` steps, in idle time (0: never)")
	f.StringArrayVar(&o.Look.Prompts, "sample", nil, "`text` that the model continues now and then, with --evaluate; may be repeated (default: as two held-out texts begin)")
	f.StringArrayVar(&o.Look.Tasks, "task", nil, "`NAME[:N][=FILE]` of a task of entrain model eval, to be scored now and then, with --evaluate; may be repeated")
	reachFlags(cmd, &o.Reaching)
	f.StringArrayVar(&o.Relays, "relay", nil, "`multiaddr` of a relay, ending in /p2p/...; may be repeated (default: those found among the run's members, and entrain relay)")
	f.BoolVar(&o.NoRelay, "no-relay", false, "do not relay traffic for members behind NAT; implied by --limit-upload")
	f.IntVar(&o.Checkpoints, "checkpoints", 3, "keep the last `N` checkpoints; 0 writes one only when the run asks this member to")
	f.StringArrayVar(&o.Uploads, "upload", nil, "`address` to which checkpoints are uploaded too: s3://host/bucket/prefix, or hf://owner/name on huggingface.co; may be repeated")
	f.DurationVar(&o.Linger, "linger", 30*time.Second, "once the run has finished, go on serving the model to others for this `time`, such as 24h; -1s: until Ctrl-C")
	f.Uint64Var(&o.Stake, "stake", 0, "stake this many `tokens` in all, adding what is missing; lost if convicted of cheating")
	f.StringVar(&o.Delegation, "delegation", "", "`line` of entrain key delegate, or a file that holds it: work for its owner, who is paid")
	poolFlag(cmd, &o.Pool)
	o.flags(cmd)
	f.StringVar(&o.Mining.Own, "bucket", "", "your S3 bucket: a `file` with one line, s3://KEY:SECRET@host/bucket/prefix?region=R, or that line without\nKEY and SECRET, which are then read from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY);\nfor runs that exchange by buckets (default: the variable ENTRAIN_BUCKET)")
	f.StringVar(&o.Mining.Read, "bucket-read", "", "a `file` with the same bucket as others read it, in the same form, with credentials that can only read: they are\nannounced to everybody (default: ENTRAIN_BUCKET_READ, or --bucket without credentials)")
	privateFlag(cmd, &o.Mining.Private)
}

// joinOptions are join's flags.
type joinOptions struct {
	participant.Options
	observing
	keyFile string
	cores   int  // at most; 0: all
	checks  bool // only
}

func (o joinOptions) check() error {
	err := o.Check()
	if o.cores < 0 || o.cores > coresMax {
		err = errors.Join(err, fmt.Errorf("--limit-cores %d: want 1 to %d", o.cores, coresMax))
	}
	return err
}

// coresMax is beyond the cores of any machine.
const coresMax = 4096

// join takes part in a run until it has finished or ctx ends.
func (c console) join(ctx context.Context, o joinOptions) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	o.confine()
	o.Endpoints = c.endpoints(o.Endpoints)
	o.Mining.Shared = c.env("ENTRAIN_BUCKET_SHARED") != "" // set by the demo
	if o.Kept, err = c.places.Chunks(c.env, func(text string) { o.Log.Warn(text) }); err != nil {
		return err
	}
	if o.Key, o.KeyFile, err = c.ownKey(o.keyFile); err != nil {
		return err
	}
	o.DefaultState = o.State == ""
	var unlock func()
	if o.State, unlock, err = c.places.LockState(participant.MemberState, o.Target.Run, o.State, o.Key.Public()); err != nil {
		return err
	}
	defer unlock()
	out := c.err
	if o.windowed(c) {
		f, err := participant.OpenSystemLog(o.State)
		if err != nil {
			return err
		}
		defer f.Close()
		out = f
	}
	o.Log = o.log.Logger(out)
	o.Remember, o.Program, o.Getenv, o.Say = c.remembered(), version().Version, c.env, c.say
	part, err := participant.New(ctx, o.Options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, part.Close()) }()
	if !o.asJSON {
		c.introduce(part)
	}
	return o.takePart(ctx, c, part)
}

// needTarget wants one argument; the command looks into it.
var needTarget = between(1, 1, "the name of one run, or a ticket (entrain status lists the runs of a chain)")

// confine makes this process keep to its limits of cores and memory. Beyond the latter the garbage
// collector works as hard as it can; the estimated need was checked before.
func (o *joinOptions) confine() {
	if o.cores > 0 {
		runtime.GOMAXPROCS(o.cores)
		o.Workers = min(o.Workers, o.cores)
	}
	if o.Memory > 0 {
		debug.SetMemoryLimit(int64(o.Memory))
	}
}

func (c console) introduce(p *participant.Participant) {
	c.say("run %q on chain %q: %s, %s parameters", p.Target.Run, p.Client.ChainID(), p.Trainer.Spec.Model.Name(), view.Thousands(uint64(p.Trainer.Engine.ParamsLen())))
	if a := p.Trainer.Spec.About; a != nil && a.Description != "" {
		c.say("%s", a.Description)
	}
	c.say("you are %s (%s); state in %s", p.Key.Public(), p.KeyFile, p.State)
	c.say("computing with %v; Ctrl-C leaves cleanly", p.Trainer.Engine)
}
