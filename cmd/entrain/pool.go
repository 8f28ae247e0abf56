package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
)

func poolCommand(c console) *cobra.Command {
	return group("pool", "Lend tokens to those who train, or borrow stake from lenders",
		`In a pool, lenders put up the stake for an operator's machines, and share what those earn. The tokens
can only become stake of members whom one of the pool's runs pays at the pool's address; nobody can take
them out otherwise. What comes back is shared by what each has lent: all of it until the lenders have
back what they lent, and less the operator's commission from then on.

Lending ends with the first stake. A convicted member's stake is lost to its lenders, and half of it goes
to the member that convicted it, which may be an accomplice of the operator's. The owner of a run decides
what the other half pays for. So lend only if you trust the owners of the runs that "entrain pool show"
names not to be the operator's accomplices, and if the operator's own part is as large as the others'
together, which --own 50% asks for: then a conviction costs the operator as much as it gains.`,
		poolCreateCommand(c), poolLendCommand(c), poolShowCommand(c), poolListCommand(c),
		poolActCommand(c, "collect", "Collect what a pool owes you",
			"Collects your share of what has come in, and the operator's commission if you are the operator. Before the\npool's first stake it takes back what you have lent.",
			"collected what was due from pool %q", func(name string) host.Body { return host.Collect{Pool: name} }),
		poolActCommand(c, "close", "Stop a pool from staking, then remove it",
			`Stops a pool from staking any more. What was not staked is shared at once, what is out when it comes
back. The operator may do so at any time, a lender when nothing was staked for 30 days. Called again by
the operator when all is collected, and nothing is out, it removes the pool and returns its deposit.`,
			"closed pool %q", func(name string) host.Body { return host.ClosePool{Pool: name} }))
}

func poolCreateCommand(c console) *cobra.Command {
	var a acting
	var commission, own string
	var least uint64
	var workers, runs []string
	cmd := &cobra.Command{
		Use:   "create POOL",
		Short: "Open a pool, as its operator",
		Long: `Opens a pool that you operate. Its terms hold for ever, so that lenders know what they agree to. You, and
the keys named with --worker, can stake from it in the runs named with --run:
entrain join RUN --stake N --pool POOL.

It takes a deposit of a millionth of all tokens, which you get back when the pool is closed and removed.
Your own part is what you lend to it like anybody else.`,
		Example: "  entrain pool create our-pool --run my-run\n  entrain pool create our-pool --run my-run --commission 12.5% --own 50% --least 1000 --worker 1f0c...e2",
		Args:    needPool,
		RunE: func(cmd *cobra.Command, args []string) error {
			terms := host.CreatePool{Name: args[0], Least: least}
			var err error
			if terms.CommissionBP, err = parseBP(commission); err != nil {
				return fmt.Errorf("--commission %w", err)
			}
			if terms.OwnBP, err = parseBP(own); err != nil {
				return fmt.Errorf("--own %w", err)
			}
			for _, s := range workers {
				k, err := parseKey(s)
				if err != nil {
					return fmt.Errorf("--worker %w", err)
				}
				terms.Workers = append(terms.Workers, k)
			}
			if len(runs) == 0 {
				return errors.New("name the runs that the pool may stake in: --run RUN, once for each")
			}
			slices.Sort(runs)
			terms.Runs = slices.Compact(runs)
			slices.SortFunc(terms.Workers, key.Public.Compare)
			terms.Workers = slices.Compact(terms.Workers)
			if err := c.act(cmd.Context(), a, func(ledger.Chain, key.Public) (host.Body, error) { return terms, nil }); err != nil {
				return fmt.Errorf("create pool %q: %w", args[0], err)
			}
			c.say("pool %q is open: lend to it with entrain pool lend %s AMOUNT", args[0], args[0])
			return nil
		},
	}
	a.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&commission, "commission", "10%", "`part` of what comes in, above what was lent, that is yours")
	f.StringVar(&own, "own", "50%", "least `part` of what is lent that must be your own")
	f.Uint64Var(&least, "least", 1, "fewest `tokens` that a lender begins with")
	f.StringArrayVar(&runs, "run", nil, "`run` that the pool may stake in; may be repeated")
	f.StringArrayVar(&workers, "worker", nil, "public `key` that may stake from the pool besides you; may be repeated")
	return cmd
}

func poolLendCommand(c console) *cobra.Command {
	var a acting
	cmd := &cobra.Command{
		Use:   "lend POOL AMOUNT",
		Short: "Lend tokens to a pool",
		Long: `Lends tokens of yours to a pool. Until its first stake you can take them back, with: entrain pool collect.
From then on you get your share of what comes in. Look at its terms first, with: entrain pool show.`,
		Example: "  entrain pool lend our-pool 5000",
		Args:    needTokens("pool"), ValidArgsFunction: c.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			amount, err := parseTokens(args[1])
			if err != nil {
				return err
			}
			err = c.act(cmd.Context(), a, func(ledger.Chain, key.Public) (host.Body, error) {
				return host.Lend{Pool: args[0], Amount: amount}, nil
			})
			if err != nil {
				return fmt.Errorf("lend %s to pool %q: %w", tokens(amount), args[0], err)
			}
			c.say("lent %s to pool %q", tokens(amount), args[0])
			return nil
		},
	}
	a.flags(cmd)
	return cmd
}

// poolActCommand makes a command that only names a pool.
func poolActCommand(c console, use, short, long, done string, body func(string) host.Body) *cobra.Command {
	var a acting
	cmd := &cobra.Command{
		Use: use + " POOL", Short: short, Long: long,
		Example: "  entrain pool " + use + " our-pool",
		Args:    needPool, ValidArgsFunction: c.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := c.act(cmd.Context(), a, func(ledger.Chain, key.Public) (host.Body, error) { return body(args[0]), nil })
			if err != nil {
				return fmt.Errorf("%s pool %q: %w", use, args[0], err)
			}
			c.say(done, args[0])
			return nil
		},
	}
	a.flags(cmd)
	return cmd
}

func needPool(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("say the name of one pool: %s; entrain pool list shows those of a chain", cmd.UseLine())
	}
	if !host.RunNameValid(args[0]) {
		return fmt.Errorf("%q is not a pool's name: names have 1 to %d of a-z, 0-9 and inner '-'", args[0], host.RunNameBytesMax)
	}
	return nil
}

// completePools completes the name of a pool.
func (c console) completePools(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return c.complete(cmd, args, func(ctx context.Context, client ledger.Chain) ([]string, error) { return client.Pools(ctx) })
}
