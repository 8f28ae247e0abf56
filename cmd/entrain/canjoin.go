package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/key/keyfile"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/wire"
)

// canJoinOptions are can-join's flags.
type canJoinOptions struct {
	participant.CheckOptions
	keyFile string
	asJSON  bool
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
			if o.Target, err = onchain.ParseTarget(args[0], &o.Endpoints); err != nil {
				return err
			}
			o.Endpoints = c.endpoints(o.Endpoints)
			return c.canJoin(cmd.Context(), o)
		},
	}
	keyFlag(cmd, &o.keyFile)
	chainFlag(cmd, &o.Endpoints)
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "", "`directory` of the prepared data, or its https:// address (default: as the run's specification says)")
	f.Uint64Var(&o.Stake, "stake", 0, "`tokens` to put up (default: the run's least stake)")
	f.StringVar(&o.Pool, "pool", "", "`pool` that the stake comes from (default: your own account)")
	miningFlags(cmd, &o.Mining)
	f.Var((*byteCount)(&o.Memory), "limit-memory", "`bytes` of memory that join may take, such as 8GB (default: what is free)")
	f.BoolVar(&o.asJSON, "json", false, "print a JSON object")
	_ = cmd.MarkFlagDirname("data")
	return cmd
}

// errCannotJoin ends can-join with status 1 when the reasons were given.
var errCannotJoin = errors.New("this machine cannot take part in the run now")

func (c console) canJoin(ctx context.Context, o canJoinOptions) error {
	var who key.Public
	own := ""
	path, err := c.keyPath(o.keyFile)
	if err != nil {
		return err
	}
	switch k, err := keyfile.Load(path, c.passphrase); {
	case err == nil:
		who = k.Public()
		own = who.String()
	case errors.Is(err, fs.ErrNotExist): // join makes one, which has done nothing yet, like this one that nobody has
		who = key.Public(wire.Sum("entrain/can-join", []byte(o.Target.Run)))
	default:
		return err
	}
	o.Remember, o.Getenv, o.Program, o.Key = c.remembered(), c.env, version().Version, who
	r, err := o.Check(ctx)
	if err != nil {
		return err
	}
	r.Key = own
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

func (c console) tellCanJoin(r participant.Report) {
	if r.Can {
		fmt.Fprintf(c.out, "yes: this machine can take part in run %q on chain %q: %s parameters, about %s of memory, %s to fetch\n",
			r.Run, r.Chain, thousands(r.Needs.Parameters), bytesText(r.Needs.Memory), bytesText(r.Needs.Model))
		return
	}
	for _, o := range r.Obstacles {
		fmt.Fprintf(c.out, "no: %s\n", o.Reason)
	}
}
