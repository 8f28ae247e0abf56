package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/wire"
)

func chainShowCommand(c console) *cobra.Command {
	var chain []string
	var hash string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show [RUN]", Aliases: []string{"id"},
		Short: "Show a chain's address and replicas, or all past states of a run",
		Long: `Shows what others need to use the chain or to add a replica to it, and the chain's replicas: those with a
seat, which vote on blocks with the weight shown, candidates, and those that have left. The list is
proven by their signatures.

The first lines are the addresses of --chain with #HEIGHT:HASH, the newest header of the chain that
this machine trusts. Anyone who gets them from you unaltered, and uses them with --chain,
ENTRAIN_CHAIN or entrain chain init, cannot be shown another chain. A header is good for five days;
after that it no longer identifies the chain's replicas.

With RUN, shows each past state of the run's coordinator: the block's height, its time, and the
state's hash. A current header proves the list, even if the blocks were deleted long ago. With
--hash it reports whether the run was ever in that state, as a log may claim.`,
		Example: "  entrain chain show\n  entrain chain show --chain https://a.example.org --json\n  entrain chain show my-run\n" +
			"  entrain chain show my-run --hash 91dd0d8f37514e814654eac1371560a85bbe7ce77430b555f209db05bc10c97f",
		Args: between(0, 1, "one run at most"), ValidArgsFunction: c.completeRuns, SuggestFor: []string{"replicas", "trust", "history"},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			run, only := "", wire.Hash{}
			if len(args) == 1 {
				if run, err = onchain.LocatedOne(args[0], &chain); err != nil {
					return err
				}
			}
			if hash != "" {
				if only, err = wire.ParseHash(hash); err != nil {
					return fmt.Errorf("--hash %q: %w", hash, err)
				}
				if run == "" {
					return errors.New("--hash: say of which run")
				}
			}
			return c.connected(cmd.Context(), chain, func(client ledger.Chain) error {
				if run != "" {
					list, err := client.History(cmd.Context(), run)
					if err != nil {
						return err
					}
					return c.history(run, list, only, asJSON)
				}
				return c.showChain(cmd.Context(), client, asJSON)
			})
		},
	}
	chainFlag(cmd, &chain)
	cmd.Flags().StringVar(&hash, "hash", "", "with RUN: only the state with this `hash`; it is an error if there was none")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// showChain prints what others need to reach the chain, and the replicas.
func (c console) showChain(ctx context.Context, client ledger.Chain, asJSON bool) error {
	shown, err := founding.Describe(ctx, client)
	if err != nil {
		return err
	}
	return c.print(asJSON, shown, shown.Write)
}

// history prints the states of a run, or only the one with a hash.
func (c console) history(run string, list []host.Change, only wire.Hash, asJSON bool) error {
	shown := []host.Change{}
	for _, s := range list {
		if only.IsZero() || s.Hash == only {
			shown = append(shown, s)
		}
	}
	if len(shown) == 0 && !only.IsZero() {
		return fmt.Errorf("run %q was never in the state %v: it was in %d others", run, only, len(list))
	}
	return c.print(asJSON, shown, func(w io.Writer) error { return report.History(w, shown) })
}
