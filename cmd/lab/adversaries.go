package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/adversary"
)

// adversariesCommand lists the kinds of cheats.
func adversariesCommand(c console) *cobra.Command {
	return &cobra.Command{
		Use:     "adversaries",
		Short:   "List every kind of cheat, and what it tries",
		Example: "  lab adversaries",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, list := range []struct {
				title string
				kinds []adversary.Kind
			}{
				{"members of runs between peers", adversary.Kinds()},
				{"members of runs of followers", adversary.Misleaders()},
				{"members of runs of slices", adversary.Aggregators()},
				{"miners of runs by buckets", adversary.Miners()},
			} {
				fmt.Fprintf(c.out, "%s:\n", list.title)
				for _, k := range list.kinds {
					fmt.Fprintf(c.out, "  %-16s  %s\n", k.Name, k.Tries)
				}
			}
			fmt.Fprintln(c.out, "validators:")
			for _, j := range adversary.Judges() {
				fmt.Fprintf(c.out, "  %-16s  %s\n", j.Name, j.Tries)
			}
			return nil
		},
	}
}
