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
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/view"
)

// poolOptions are the terms of a pool, as flags say them.
type poolOptions struct {
	commission, own string
	least           uint64
	workers         []string
}

func poolCommand(c console) *cobra.Command {
	var a acting
	var o poolOptions
	var closing bool
	cmd := &cobra.Command{
		Use:   "pool POOL RUN... | pool POOL --close",
		Short: "Open or close a pool that borrows stake from lenders",
		Long: `Opens a pool that you operate and that may stake in the RUNs. In a pool, lenders put up the stake for an
operator's machines and share what those earn. The tokens can only become stake of members whose payee is the
pool, in the runs that the pool names. What comes back is shared by what each has lent: all of it until the
lenders have back what they lent, and less the operator's commission afterwards. Nobody can change the terms.

You, and the keys named with --worker, can stake from it: entrain join RUN --stake N --pool POOL. Your own
part is what you lend to it like anybody else. A pool takes a deposit of a millionth of all tokens, which
you get back when it is removed.

You see its terms with entrain wallet show pool:POOL, lend with entrain wallet send pool:POOL AMOUNT, and
collect with entrain wallet claim pool:POOL.

Lending ends with the first stake. A convicted member's stake is lost to its lenders, and half of it goes to
the member that convicted it, which may be an accomplice of the operator. The owner of the run decides what
the other half pays for. So lend only if you trust that the owners of the pool's runs are no accomplices of
the operator, and if the operator's own part is as large as the others' together, which --own 50% asks for:
then a conviction costs the operator as much as it gains.

--close stops the pool from staking any more. What was not staked is shared at once, and what is staked when
it comes back. The operator may do so at any time, a lender when nothing was staked for 30 days. When
everybody has collected and nothing is staked, the operator's second call removes the pool and returns its
deposit.`,
		Example: "  entrain pool our-pool my-run\n  entrain pool our-pool my-run --commission 12.5% --own 50% --least 1000 --worker 1f0c...e2\n" +
			"  entrain pool our-pool --close",
		ValidArgsFunction: c.completePools,
		Args: func(cmd *cobra.Command, args []string) error {
			if closing {
				return needPool(cmd, args)
			}
			return cobra.MatchAll(between(2, math.MaxInt, "the name of the pool and the runs it may stake in"), named)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if closing {
				return c.send(cmd.Context(), a, host.ClosePool{Pool: args[0]}, fmt.Sprintf("close pool %q", args[0]), fmt.Sprintf("closed pool %q", args[0]))
			}
			return c.openPool(cmd.Context(), a, o, args[0], args[1:])
		},
	}
	a.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.commission, "commission", "10%", "`part` of what comes in, above what was lent, that is yours")
	f.StringVar(&o.own, "own", "50%", "least `part` of what is lent that must be your own")
	f.Uint64Var(&o.least, "least", 1, "fewest `tokens` that a lender begins with")
	f.StringArrayVar(&o.workers, "worker", nil, "public `key` that may stake from the pool besides you; may be repeated")
	f.BoolVar(&closing, "close", false, "stop the pool from staking, then remove it")
	for _, terms := range []string{"commission", "own", "least", "worker"} {
		cmd.MarkFlagsMutuallyExclusive("close", terms)
	}
	return cmd
}

// openPool creates a pool on a chain.
func (c console) openPool(ctx context.Context, a acting, o poolOptions, name string, runs []string) (err error) {
	terms := host.CreatePool{Name: name, Least: o.least, Runs: slices.Compact(slices.Sorted(slices.Values(runs)))}
	if terms.CommissionBP, err = view.ParsePercent(o.commission); err != nil {
		return fmt.Errorf("--commission %w", err)
	}
	if terms.OwnBP, err = view.ParsePercent(o.own); err != nil {
		return fmt.Errorf("--own %w", err)
	}
	if terms.Workers, err = onchain.ParseKeys(o.workers); err != nil {
		return fmt.Errorf("--worker %w", err)
	}
	return c.send(ctx, a, terms, fmt.Sprintf("create pool %q", name),
		fmt.Sprintf("pool %q is open: lend to it with entrain wallet send pool:%s AMOUNT", name, name))
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
	list, err := onchain.Pools(ctx, client)
	if err != nil {
		return err
	}
	if len(list) == 0 && !asJSON {
		c.say("chain %q has no pools yet; open one with: entrain pool POOL RUN", client.ChainID())
		return nil
	}
	return printAll(c, asJSON, list, report.Pools)
}

// completePools completes the name of a pool.
func (c console) completePools(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.complete(cmd, args, func(ctx context.Context, client ledger.Chain) ([]string, error) { return client.Pools(ctx) })
}
