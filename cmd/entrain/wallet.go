package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/view"
)

func walletCommand(c console) *cobra.Command {
	return group("wallet", "Show, send, stake and collect tokens",
		`The chain's genesis makes all the tokens there are. A member stakes tokens and loses them if it cheats. A
run's treasury holds the tokens that people send to the run, and pays for each point.`,
		walletShowCommand(c), walletSendCommand(c), walletClaimCommand(c))
}

func walletShowCommand(c console) *cobra.Command {
	var a acting
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [KEY|pool:POOL]",
		Short: "Show how many tokens a key or a pool has",
		Long: `Shows how many tokens a key can spend; without KEY, your own. Stake in runs and tokens lent to pools are not
among them: entrain status RUN and entrain wallet show pool:POOL list those. On Solana it also shows the
key's address there, and its SOL.

With pool:POOL, shows a pool's terms, what was lent to it and by whom, what it can still stake, and
what it owes to whom. pool: alone lists the pools of the chain.`,
		Example: "  entrain wallet show\n  entrain wallet show $(entrain key) --json | jq .tokens\n" +
			"  entrain wallet show pool:\n  entrain wallet show pool:our-pool --json | jq .lenders",
		Args: between(0, 1, "one key or pool at most"), SuggestFor: []string{"pool"},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var who key.Public
			if len(args) == 0 {
				own, err := c.loadKey(a.keyFile)
				if err != nil {
					return err
				}
				who = own.Public()
			} else if pool, ok := strings.CutPrefix(args[0], onchain.PoolPrefix); ok {
				return c.showPool(cmd.Context(), a.chain, pool, asJSON)
			} else {
				who, err = onchain.ParseKey(args[0])
			}
			if err != nil {
				return err
			}
			return c.connected(cmd.Context(), a.chain, func(client ledger.Chain) error {
				has, err := report.GetAccount(cmd.Context(), client, who)
				if err != nil {
					return err
				}
				return c.print(asJSON, has, has.Write)
			})
		},
	}
	a.flags(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func walletSendCommand(c console) *cobra.Command {
	var a acting
	var member, pool string
	cmd := &cobra.Command{
		Use:   "send KEY|RUN|stake:RUN|pool:POOL AMOUNT",
		Short: "Send tokens to a key, a run's treasury, a member's stake or a pool",
		Long: `Sends tokens of yours. Nobody can undo that.

To a KEY: they are its owner's. The first time a key receives, and in what you keep, amounts below a
67-millionth of all tokens are refused, except 0.

To a RUN, or RUN@HOST: they go to its treasury, which pays members for each point at the rate in the run's
specification (trust.rate). Its owner gets back only what nobody has earned (entrain run close --refund).

To stake:RUN: they are added to your stake in a run, or to that of --member. A member who is convicted of
cheating loses its stake. A member who leaves gets it back with entrain wallet claim once the run's unbonding
time is over; the run pays it to the payee that the member named when it joined. With --pool they come from
a pool that you act for, which must be the member's payee. To join with a stake, use entrain join RUN
--stake N.

To pool:POOL: you lend them. Until the pool's first stake you can take them back with entrain wallet claim;
afterwards you get your share of what comes in. See its terms first: entrain wallet show pool:POOL.`,
		Example: "  entrain wallet send 1f0c...e2 500\n  entrain wallet send my-run 1000000\n  entrain wallet send stake:my-run 500 --pool our-pool\n" +
			"  entrain wallet send pool:our-pool 5000",
		Args: needAmount("a key, a run, stake:RUN or a pool"), ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := onchain.ParseTokens(args[1])
			if err != nil {
				return err
			}
			if run, ok := strings.CutPrefix(args[0], onchain.StakePrefix); ok {
				return c.bond(cmd.Context(), a, run, amount, member, pool)
			}
			if member != "" || pool != "" {
				return errors.New("--member and --pool are for stake:RUN")
			}
			body, to, err := onchain.Payment(args[0], amount, &a.chain)
			if err != nil {
				return err
			}
			return c.send(cmd.Context(), a, body, fmt.Sprintf("send %s to %s", view.Tokens(amount), to), fmt.Sprintf("sent %s to %s", view.Tokens(amount), to))
		},
	}
	a.flags(cmd)
	memberFlag(cmd, &member)
	poolFlag(cmd, &pool)
	return cmd
}

// bond adds tokens of the user's, or of a pool, to the stake of a member of a run.
func (c console) bond(ctx context.Context, a acting, run string, amount uint64, member, pool string) error {
	of, err := optionalKey("member", member)
	if err != nil {
		return err
	}
	if run, err = a.on(run); err != nil {
		return err
	}
	err = c.act(ctx, a, func(_ ledger.Chain, self key.Public) (host.Body, error) {
		if of.IsZero() {
			of = self
		}
		bond := host.ToRun(run, coordinator.Deposit{Member: of})
		bond.Value, bond.From = amount, pool
		return bond, nil
	})
	if err != nil {
		return fmt.Errorf("send %s to the stake in run %q: %w", view.Tokens(amount), run, err)
	}
	c.say("%s added to the stake of %s in run %q", view.Tokens(amount), view.Short(of.String()), run)
	return nil
}

func walletClaimCommand(c console) *cobra.Command {
	var a acting
	var member string
	var asJSON, retire bool
	cmd := &cobra.Command{
		Use:   "claim RUN|pool:POOL",
		Short: "Collect what a run or a pool owes you",
		Long: `Makes a run pay what it owes you: tokens for your settled points, at the run's rate and as far as its treasury
goes, your rewards, and your stake when you have left and it is free. Points settle when the epoch ends in
which you earned them. You can claim what the treasury lacks once somebody has sent tokens to the run.

With --member anybody can have a member paid whose payee is a pool; the pool's lenders then claim their
shares. From pool:POOL you collect your share of what has come in, and the operator its commission. Before
the pool's first stake you get back what you lent.

With --retire you give up your seat as a validator. Keep entrain validate running: you score the running
period too, and when it is settled a claim pays your stake.`,
		Example: "  entrain wallet claim my-run\n  entrain wallet claim my-run --member 1f0c...e2\n  entrain wallet claim pool:our-pool",
		Args:    between(1, 1, "the run or the pool that owes you"), ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if pool, ok := strings.CutPrefix(args[0], onchain.PoolPrefix); ok {
				return c.send(cmd.Context(), a, host.Collect{Pool: pool}, fmt.Sprintf("claim from pool %q", pool), fmt.Sprintf("collected what pool %q owed", pool))
			}
			run, err := a.on(args[0])
			if err != nil {
				return err
			}
			if retire {
				return c.send(cmd.Context(), a, host.ToRun(run, coordinator.RetireValidator{}), fmt.Sprintf("retire from run %q", run),
					fmt.Sprintf("gave up the seat in run %q; a claim pays what is still held for it", run))
			}
			of, err := optionalKey("member", member)
			if err != nil {
				return err
			}
			var due onchain.Due
			err = c.act(cmd.Context(), a, func(client ledger.Chain, self key.Public) (body host.Body, err error) {
				body = host.ClaimFor{Run: run, Member: of}
				if of.IsZero() {
					of, body = self, host.ToRun(run, coordinator.Claim{})
				}
				due, err = onchain.GetDue(cmd.Context(), client, run, of)
				return body, err
			})
			if err != nil {
				return fmt.Errorf("claim from run %q: %w", run, err)
			}
			if asJSON {
				return c.object(due)
			}
			c.say("run %q paid %s to %s", run, view.Tokens(due.Tokens), due.Payee)
			return nil
		},
	}
	a.flags(cmd)
	memberFlag(cmd, &member)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&retire, "retire", false, "give up your seat as a validator")
	return cmd
}

// memberFlag adds --member, by its key.
func memberFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "member", "", "the `member`, by its public key (default: your own)")
}

// poolFlag adds --pool.
func poolFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "pool", "", "`pool` that the stake comes from (default: your own account)")
}
