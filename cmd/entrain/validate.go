package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/validator"
)

// validateOptions are validate's flags.
type validateOptions struct {
	target    onchain.Target
	run       string
	endpoints []string
	keyFile   string
	state     string
	data      string
	from      string
	workers   int
	sample    uint32
	losses    uint32
	stake     uint64
	pool      string
	payee     string
	private   bool
	asJSON    bool
}

func validateCommand(c console) *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:   "validate RUN | RUN@HOST | TICKET",
		Short: "Score a run's miners, and be paid for it",
		Long: `Takes a seat among the validators of a run that exchanges by buckets, and scores its miners until the run has
finished, or until Ctrl-C: for each window it computes the gradients of some of them again, compares them with
what they revealed, keeps a moving average of each miner's scores, and tells the chain once a period: first
the hash of what it will say, then what it says, so that nobody can copy it. Validators are paid for being
near to what all of them, by stake and trust, agree on.

It needs the run's data, as miners do, and no bucket of its own. --stake is how many tokens it puts up for
its seat; the lowest stakes make room for higher ones, and are paid back at once. What it has found is kept
in the state directory, with a line for each evaluation in scores.jsonl; entrain score --log shows it.
Called again, it goes on from there, also in the middle of a period.`,
		Example: `  entrain validate my-run --data ./corpus --stake 5000
  entrain validate my-run@chain.example.org --sample 4 --workers 8
  entrain validate my-run.ticket --json | jq -c 'select(.event == "scored") | {member, score, verdict}'`,
		Args:              needTarget,
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.target, err = onchain.ParseTarget(args[0], &o.endpoints); err != nil {
				return err
			}
			o.run = o.target.Run
			return c.validate(cmd.Context(), o)
		},
	}
	keyFlag(cmd, &o.keyFile)
	chainFlag(cmd, &o.endpoints)
	f := cmd.Flags()
	f.StringVar(&o.state, "state", "", "`directory` for what it has found (default: in the user's directory for data)")
	f.StringVar(&o.data, "data", "", "`directory` of the prepared data, or its https:// address (default: as the run's specification says)")
	f.StringVar(&o.from, "from", "", "`directory` of the checkpoint that the run goes on from (default: as the specification says, or from the miners)")
	f.IntVar(&o.workers, "workers", defaultWorkers(), "`number` of goroutines that compute; changes the speed, never the result")
	f.Uint32Var(&o.sample, "sample", 0, "`results` of a window to compute again (0: so many that each miner is evaluated twice a period)")
	f.Uint32Var(&o.losses, "losses", 4, "`sequences` of a miner's, and as many of nobody's, on which the loss is measured with and without its result (0: none)")
	f.Uint64Var(&o.stake, "stake", 1, "put up so many `tokens` for a seat; paid back when it is given up")
	f.StringVar(&o.pool, "pool", "", "`pool` that the stake comes from (default: your own account)")
	f.StringVar(&o.payee, "payee", "", "public `key` that is paid (default: your own)")
	f.BoolVar(&o.private, "private-buckets", false, "read miners' buckets at addresses of this machine and of private networks as well")
	f.BoolVar(&o.asJSON, "json", false, "print a JSON object for each thing that happens")
	_ = cmd.MarkFlagDirname("data")
	_ = cmd.MarkFlagDirname("from")
	_ = cmd.MarkFlagDirname("state")
	return cmd
}

func (o validateOptions) check() error {
	var errs []error
	if o.workers < 1 || o.workers > workersMax {
		errs = append(errs, fmt.Errorf("--workers %d: want 1 to %d", o.workers, workersMax))
	}
	if o.stake == 0 {
		errs = append(errs, errors.New("--stake 0: a seat takes at least 1 token"))
	}
	if o.pool != "" && !host.RunNameValid(o.pool) {
		errs = append(errs, fmt.Errorf("--pool %q is no pool's name", o.pool))
	}
	return errors.Join(errs...)
}

// decisions is what the flags say about what the validator decides.
func (o validateOptions) decisions() (validator.Config, error) {
	cfg := validator.Config{Sample: o.sample, Losses: o.losses, Register: true}
	if o.payee != "" {
		payee, err := parseKey(o.payee)
		if err != nil {
			return cfg, fmt.Errorf("--payee %w", err)
		}
		cfg.Payee = payee
	}
	return cfg, nil
}

// validate scores until the run has finished and all of it is paid, or until ctx ends.
func (c console) validate(ctx context.Context, o validateOptions) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	decisions, err := o.decisions()
	if err != nil {
		return err
	}
	k, _, err := c.ownKey(o.keyFile)
	if err != nil {
		return err
	}
	var unlock func()
	if o.state, unlock, err = c.ownState("validators", o.run, o.state, k); err != nil {
		return err
	}
	defer unlock()
	v, err := newValidation(ctx, c, o, k, decisions)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	return v.run(ctx)
}

// lastWords is how long the validator takes to end once all is settled: what is under way is dropped, what counts is on the disk.
const lastWords = 100 * time.Millisecond
