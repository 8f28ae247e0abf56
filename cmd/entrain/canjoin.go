package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/key/keyfile"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/wire"
)

// canJoinOptions are can-join's flags.
type canJoinOptions struct {
	target    onchain.Target
	endpoints []string
	keyFile   string
	data      string
	stake     uint64
	pool      string
	memory    byteCount
	mining    mining
	asJSON    bool
}

func canJoinCommand(c console) *cobra.Command {
	var o canJoinOptions
	cmd := &cobra.Command{
		Use:   "can-join RUN | RUN@HOST | TICKET",
		Short: "Say whether this machine can take part in a run, or why not",
		Long: `Says whether this machine and this key can take part in a run now, and else each reason why not, with what
to do about it: the run has finished, is paused or full; the stake is missing; the key was ejected, and for
what; the data is not to be had; the bucket of a miner cannot be written or read; the model is too large for
this machine's memory; its arithmetic is not everybody's; its clock is off. It changes nothing. entrain join
asks the same before it begins.

The exit status is 0 for yes and 1 for no.`,
		Example: `  entrain can-join my-run
  entrain can-join my-run@chain.example.org --data ./corpus --stake 5000
  entrain can-join my-run.ticket --json`,
		Args: needTarget, ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.target, err = onchain.ParseTarget(args[0], &o.endpoints); err != nil {
				return err
			}
			o.endpoints = c.endpoints(o.endpoints)
			return c.canJoin(cmd.Context(), o)
		},
	}
	keyFlag(cmd, &o.keyFile)
	chainFlag(cmd, &o.endpoints)
	f := cmd.Flags()
	f.StringVar(&o.data, "data", "", "`directory` of the prepared data, or its https:// address (default: as the run's specification says)")
	f.Uint64Var(&o.stake, "stake", 0, "`tokens` to put up (default: the run's least stake)")
	f.StringVar(&o.pool, "pool", "", "`pool` that the stake comes from (default: your own account)")
	o.mining.flags(cmd)
	f.Var(&o.memory, "limit-memory", "`bytes` of memory that join may take, such as 8GB (default: what is free)")
	f.BoolVar(&o.asJSON, "json", false, "print a JSON object")
	_ = cmd.MarkFlagDirname("data")
	return cmd
}

// canJoinReport is what can-join finds.
type canJoinReport struct {
	Run       string     `json:"run"`
	Chain     string     `json:"chain"`
	Key       string     `json:"key"` // "" if there is none yet
	Can       bool       `json:"can"`
	Obstacles []obstacle `json:"obstacles"`
	Needs     sizes      `json:"needs"`
}

// errCannotJoin ends can-join with status 1 when the reasons were given.
var errCannotJoin = errors.New("this machine cannot take part in the run now")

func (c console) canJoin(ctx context.Context, o canJoinOptions) error {
	r := canJoinReport{Run: o.target.Run, Obstacles: []obstacle{}}
	var who key.Public
	path, err := c.keyPath(o.keyFile)
	if err != nil {
		return err
	}
	switch k, err := keyfile.Load(path, c.passphrase); {
	case err == nil:
		who = k.Public()
		r.Key = who.String()
	case errors.Is(err, fs.ErrNotExist): // join makes one, which has done nothing yet, like this one that nobody has
		who = key.Public(wire.Sum("entrain/can-join", []byte(o.target.Run)))
	default:
		return err
	}
	if err := c.examine(ctx, o, who, &r); err != nil {
		return err
	}
	r.Can = len(r.Obstacles) == 0
	if o.asJSON {
		if err := c.object(r); err != nil {
			return err
		}
	} else {
		c.tellCanJoin(r)
	}
	if !r.Can {
		return errCannotJoin
	}
	return nil
}

// examine fills in a report.
func (c console) examine(ctx context.Context, o canJoinOptions, who key.Public, r *canJoinReport) error {
	client, err := c.dial(ctx, o.endpoints, nil)
	if err != nil {
		return err
	}
	defer client.Close()
	r.Chain = client.ChainID()
	add := func(kind string, err error) {
		r.Obstacles = append(r.Obstacles, obstacle{Kind: kind, Reason: err.Error()})
	}
	on, err := onchain.GetRun(ctx, client, o.target.Run)
	if err == nil {
		err = o.target.Check(client.ChainID(), on.Snapshot.State.ID())
	}
	if err != nil {
		add(obstacleRun, err)
		return nil
	}
	if r.Needs, err = sizesOf(on.Spec); err != nil {
		add(obstacleRun, err)
		return nil
	}
	if o.stake == 0 {
		o.stake = on.Spec.Trust.Stake
	}
	a := applicant{key: who, stake: o.stake, pool: o.pool, memory: o.memory.or(memoryFree()), skew: onchain.ClockSkew(o.endpoints)}
	list, err := a.obstacles(ctx, client, on)
	if err != nil {
		return err
	}
	r.Obstacles = append(r.Obstacles, list...)
	if err := c.dataToBeHad(ctx, o, on); err != nil {
		add(obstacleData, err)
	}
	if err := o.mining.check(on.Spec); err != nil {
		add(obstacleRun, err)
	} else if on.Spec.Buckets() {
		if err := o.mining.try(ctx, c); err != nil {
			add(obstacleBucket, err)
		}
	}
	pool := exact.NewPool(defaultWorkers())
	defer pool.Close()
	if err := selfTest(ctx, pool); err != nil {
		add(obstacleArithmetic, err)
	}
	return nil
}

// dataToBeHad opens the run's data as join would.
func (c console) dataToBeHad(ctx context.Context, o canJoinOptions, on onchain.Run) error {
	location, err := o.target.DataOf(o.data, on)
	if err != nil {
		return err
	}
	manifest, err := wire.ParseHash(on.Spec.Data.Manifest)
	if err != nil {
		return fmt.Errorf("the run's data.manifest: %w", err)
	}
	set, err := openData(ctx, location, manifest, data.Options{SequenceTokens: uint32(on.Spec.Data.Sequence), Seed: on.Spec.DataSeed(), First: on.Spec.First()})
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	set.Close()
	return nil
}

func (c console) tellCanJoin(r canJoinReport) {
	if r.Can {
		fmt.Fprintf(c.out, "yes: this machine can take part in run %q on chain %q: %s parameters, about %s of memory, %s to fetch\n",
			r.Run, r.Chain, thousands(r.Needs.Parameters), bytesText(r.Needs.Memory), bytesText(r.Needs.Model))
		return
	}
	for _, o := range r.Obstacles {
		fmt.Fprintf(c.out, "no: %s\n", o.Reason)
	}
}
