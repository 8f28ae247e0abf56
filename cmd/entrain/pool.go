package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/view"
)

func poolCommand(c console) *cobra.Command {
	return group("pool", "Open and close pools that borrow stake from lenders",
		`In a pool, lenders put up the stake for an operator's machines and share what those earn. The tokens can only
become stake of members whose payee is the pool, in the runs that the pool names. What comes back is shared
by what each has lent: all of it until the lenders have back what they lent, and less the operator's
commission afterwards.

You see its terms with entrain wallet show pool:POOL, lend with entrain wallet send pool:POOL AMOUNT, and
collect with entrain wallet claim pool:POOL.

Lending ends with the first stake. A convicted member's stake is lost to its lenders, and half of it goes to
the member that convicted it, which may be an accomplice of the operator. The owner of the run decides what
the other half pays for. So lend only if you trust that the owners of the pool's runs are no accomplices of
the operator, and if the operator's own part is as large as the others' together, which --own 50% asks for:
then a conviction costs the operator as much as it gains.`,
		poolCreateCommand(c), poolCloseCommand(c))
}

func poolCreateCommand(c console) *cobra.Command {
	var a acting
	var commission, own string
	var least uint64
	var workers []string
	cmd := &cobra.Command{
		Use:   "create POOL RUN...",
		Short: "Open a pool, as its operator",
		Long: `Opens a pool that you operate and that may stake in the RUNs. Nobody can change its terms, so lenders know
what they agree to. You, and the keys named with --worker, can stake from it:
entrain join RUN --stake N --pool POOL.

It takes a deposit of a millionth of all tokens, which you get back when the pool is closed and removed.
Your own part is what you lend to it like anybody else.`,
		Example: "  entrain pool create our-pool my-run\n  entrain pool create our-pool my-run --commission 12.5% --own 50% --least 1000 --worker 1f0c...e2",
		Args:    cobra.MatchAll(between(2, math.MaxInt, "the name of the pool and the runs it may stake in"), named),
		RunE: func(cmd *cobra.Command, args []string) error {
			terms := host.CreatePool{Name: args[0], Least: least, Runs: slices.Clone(args[1:])}
			var err error
			if terms.CommissionBP, err = view.ParsePercent(commission); err != nil {
				return fmt.Errorf("--commission %w", err)
			}
			if terms.OwnBP, err = view.ParsePercent(own); err != nil {
				return fmt.Errorf("--own %w", err)
			}
			if terms.Workers, err = parseKeys(workers); err != nil {
				return fmt.Errorf("--worker %w", err)
			}
			slices.Sort(terms.Runs)
			terms.Runs = slices.Compact(terms.Runs)
			return c.send(cmd.Context(), a, terms, fmt.Sprintf("create pool %q", args[0]),
				fmt.Sprintf("pool %q is open: lend to it with entrain wallet send pool:%s AMOUNT", args[0], args[0]))
		},
	}
	a.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&commission, "commission", "10%", "`part` of what comes in, above what was lent, that is yours")
	f.StringVar(&own, "own", "50%", "least `part` of what is lent that must be your own")
	f.Uint64Var(&least, "least", 1, "fewest `tokens` that a lender begins with")
	f.StringArrayVar(&workers, "worker", nil, "public `key` that may stake from the pool besides you; may be repeated")
	return cmd
}

func poolCloseCommand(c console) *cobra.Command {
	var a acting
	cmd := &cobra.Command{
		Use: "close POOL", Short: "Stop a pool from staking, then remove it",
		Long: `Stops a pool from staking any more. What was not staked is shared at once, and what is staked when it comes
back. The operator may do so at any time, a lender when nothing was staked for 30 days. When everybody has
collected and nothing is staked, the operator's second call removes the pool and returns its deposit.`,
		Example: "  entrain pool close our-pool",
		Args:    needPool, ValidArgsFunction: c.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.send(cmd.Context(), a, host.ClosePool{Pool: args[0]}, fmt.Sprintf("close pool %q", args[0]), fmt.Sprintf("closed pool %q", args[0]))
		},
	}
	a.flags(cmd)
	return cmd
}

// showPool prints a pool of a chain, all of them if name is "".
func (c console) showPool(ctx context.Context, chain []string, name string, asJSON bool) error {
	return c.connected(ctx, chain, func(client ledger.Chain) error {
		if name == "" {
			return c.listPools(ctx, client, asJSON)
		}
		p, err := client.Pool(ctx, name)
		if errors.Is(err, ledger.ErrUnknownPool) {
			err = fmt.Errorf("chain %q has no pool %q; entrain wallet show pool: lists those it has", client.ChainID(), name)
		}
		if err != nil {
			return err
		}
		return c.print(asJSON, p, func(w io.Writer) error { return report.Pool(w, p) })
	})
}

// listPools prints a line for each pool of a chain.
func (c console) listPools(ctx context.Context, client ledger.Chain, asJSON bool) error {
	names, err := client.Pools(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 && !asJSON {
		c.say("chain %q has no pools yet; open one with: entrain pool create POOL RUN", client.ChainID())
		return nil
	}
	var list []host.Pool
	for _, name := range names {
		p, err := client.Pool(ctx, name)
		if errors.Is(err, ledger.ErrUnknownPool) {
			continue // removed in between
		}
		if err != nil {
			return err
		}
		list = append(list, p)
	}
	return printAll(c, asJSON, list, report.Pools)
}

// completePools completes the name of a pool.
func (c console) completePools(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.complete(cmd, args, func(ctx context.Context, client ledger.Chain) ([]string, error) { return client.Pools(ctx) })
}
