package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/wire"
)

func chainHistoryCommand(c console) *cobra.Command {
	var chain []string
	var state string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "history RUN",
		Short: "Show all states a run was ever in, proven by the chain",
		Long: `Shows each state that the run's coordinator was in: the block's height, its time, and the state's hash.
The list is proven by a header of today, although the blocks may be deleted long since. With --state HASH it
shows whether the run was ever in that state, as a log may claim.`,
		Example: "  entrain chain history my-run\n  entrain chain history my-run --state 91dd0d8f37514e814654eac1371560a85bbe7ce77430b555f209db05bc10c97f",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := onchain.LocatedOne(args[0], &chain)
			if err != nil {
				return err
			}
			var only wire.Hash
			if state != "" {
				if only, err = wire.ParseHash(state); err != nil {
					return fmt.Errorf("--state %q: %w", state, err)
				}
			}
			client, err := c.dial(cmd.Context(), chain, nil)
			if err != nil {
				return err
			}
			list, err := client.History(cmd.Context(), run)
			if err := errors.Join(err, client.Close()); err != nil {
				return err
			}
			return c.history(run, list, only, asJSON)
		},
	}
	chainFlag(cmd, &chain)
	f := cmd.Flags()
	f.StringVar(&state, "state", "", "only the state with this `hash`; it is an error if there was none")
	f.BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
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
	if asJSON {
		return c.object(shown)
	}
	for _, s := range shown {
		if _, err := fmt.Fprintf(c.out, "%10d  %s  %v\n", s.Height, time.UnixMilli(int64(s.TimeMs)).UTC().Format(time.DateTime), s.Hash); err != nil {
			return err
		}
	}
	return nil
}
