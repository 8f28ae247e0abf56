package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/validator"
)

// validateOptions are validate's flags.
type validateOptions struct {
	participant.ValidatorOptions
	keyFile string
	sample  uint32
	payee   string
	asJSON  bool
}

func validateCommand(c console) *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:   "validate RUN | RUN@HOST | TICKET",
		Short: "Score a run's miners, and be paid for it",
		Long: `Takes a validator's seat in a run that exchanges by buckets, and scores miners until Ctrl-C, or until
the run has finished and has paid the seat's stake and what it earned. For each window it recomputes
the gradients of some miners, compares them with what they revealed, and updates each miner's
average. Once a period it sends its scores to the chain: first their hash, then the scores, so that
nobody can copy them. Validators are paid for being close to the scores that all of them, by stake
and trust, agree on.

With --bittensor it also sets the weights of a subnet of Bittensor by the run's scores, after each period, and
stays until hidden ones are shown, unless the chain does it. Hotkey and node are those of btcli:
$BT_WALLET_PATH, $BT_WALLET_NAME, $BT_WALLET_HOTKEY, $BT_SUBTENSOR_CHAIN_ENDPOINT. A failure there is told,
and does not end the validator.

It needs the run's data, as miners do. If ENTRAIN_BUCKET names a bucket, as for join, it says there
which results it cannot get, and witnesses copy these for it; without one they score 0. --stake is
the stake for its seat; when a period is settled, higher stakes replace the lowest, which can then be
claimed. entrain wallet claim RUN --retire gives the seat up. The state directory holds its findings,
with a line for each evaluation in scores.jsonl; entrain status RUN --explain MEMBER --state shows
them. The next call continues from there, even within a period.`,
		Example: `  entrain validate my-run --data ./corpus --stake 5000
  entrain validate my-run@chain.example.org --recompute 4 --workers 8
  entrain validate my-run --bittensor 12
  entrain validate my-run.ticket --json | jq -c 'select(.event == "scored") | {member, score, verdict}'`,
		Args:              needTarget,
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Target, err = onchain.ParseTarget(args[0], &o.Endpoints); err != nil {
				return err
			}
			return c.validate(cmd.Context(), o)
		},
	}
	keyFlag(cmd, &o.keyFile)
	chainFlag(cmd, &o.Endpoints)
	f := cmd.Flags()
	stateFlag(cmd, &o.State, "in the user's directory for data")
	dataFlag(cmd, &o.Data)
	fromFlag(cmd, &o.From)
	workersFlag(cmd, &o.Workers)
	deviceFlag(cmd, &o.Device)
	f.Uint32Var(&o.sample, "recompute", 0, "`results` of a window to compute again (0: enough to evaluate each miner twice a period)")
	f.Uint64Var(&o.Stake, "stake", 1, "stake this many `tokens` for a seat; paid back when you give the seat up")
	poolFlag(cmd, &o.Pool)
	f.Uint16Var(&o.NetUID, "bittensor", 0, "`NETUID` of a subnet whose weights are set by the run's scores (0: none)")
	f.StringVar(&o.payee, "payee", "", "public `key` that is paid (default: your own)")
	privateFlag(cmd, &o.Mining.Private)
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

// lossSequences is the number of sequences of a miner's, and as many of nobody's, on which the loss
// is measured with and without its result.
const lossSequences = 4

// validate scores until the run has finished and all of it is paid, or until ctx ends.
func (c console) validate(ctx context.Context, o validateOptions) (err error) {
	o.Decisions = validator.Config{Sample: o.sample, Losses: lossSequences, Register: true}
	if o.Decisions.Payee, err = optionalKey("payee", o.payee); err != nil {
		return err
	}
	o.Endpoints, o.Remember, o.Getenv, o.Tell = c.endpoints(o.Endpoints), c.remembered(), c.env, c.tell
	if o.Kept, err = c.places.Chunks(c.env, o.Tell); err != nil {
		return err
	}
	if err := o.Check(ctx); err != nil {
		return err
	}
	if o.Key, _, err = c.ownKey(o.keyFile); err != nil { // which may make one
		return err
	}
	var unlock func()
	if o.State, unlock, err = c.places.LockState(participant.ValidatorState, o.Target.Run, o.State, o.Key.Public()); err != nil {
		return err
	}
	defer unlock()
	o.Observe, o.Scored = c.validatorShown(o.asJSON)
	v, err := participant.NewValidator(ctx, o.ValidatorOptions)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if !o.asJSON {
		c.say("validating run %q on chain %q as %s; state in %s; Ctrl-C stops", o.Target.Run, v.Client.ChainID(), o.Key.Public(), o.State)
	}
	return v.Run(ctx)
}

// validatorShown returns functions that print a validator's events. Events of every window are only
// for programs.
func (c console) validatorShown(asJSON bool) (func(participant.ValidatorEvent), func(participant.Scored)) {
	if asJSON {
		return func(ev participant.ValidatorEvent) { _ = c.object(ev) }, func(line participant.Scored) { _ = c.object(line) }
	}
	last := ""
	return func(ev participant.ValidatorEvent) {
		if text := ev.Words(); text != "" && text != last { // it asks for a seat again and again
			last = text
			c.say("%s", text)
		}
	}, func(line participant.Scored) { c.say("%s", line.Words()) }
}
