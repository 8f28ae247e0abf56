package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/study"
	"github.com/entrain-network/entrain/view"
)

// robustCommand measures the damage that unchecked liars do to training.
func robustCommand(c console) *cobra.Command {
	var o study.RobustOptions
	var sparse bool
	cmd := &cobra.Command{
		Use:   "robust",
		Short: "Measure the damage of unchecked liars, by how votes count",
		Long: `Trains a small model again and again: honestly, and with a share of the members attacking in every
round, never checked, under each way to count votes (optimizer.distro.votes_max), or with --sparseloco
to clip updates (optimizer.sparseloco.clip_chunks). Shows the held-out loss after the last step, and how
much of a round's step one attacker and all attackers determine.

The numbers are the same on every machine. It takes about ten minutes.`,
		Example: "  lab robust\n  lab robust --members 60 --steps 80",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Members < 2 || o.Members > robustMembersMax || o.Steps < 10 || o.Steps > numberMax {
				return fmt.Errorf("--members %d --steps %d: want 2 to %d members and at least 10 steps", o.Members, o.Steps, robustMembersMax)
			}
			if sparse {
				o.Rules = study.SparseRules()
			}
			o.Progress = func(what string) { c.say("training: %s", what) }
			r, err := study.MeasureRobust(cmd.Context(), o)
			if err != nil {
				return err
			}
			return writeRobust(c.out, r)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Members, "members", 30, "`number` of members")
	f.IntVar(&o.Steps, "steps", 160, "`steps` to train")
	f.BoolVar(&sparse, "sparseloco", false, "measure codec sparseloco, by how it clips")
	return cmd
}

// robustMembersMax bounds --members: the command computes one member after the other.
const robustMembersMax = 1000

// writeRobust writes losses by attack and share, a column for each rule.
func writeRobust(out io.Writer, r study.Robust) error {
	fmt.Fprintf(out, "%d members, %d steps, %s parameters; held-out loss before %.3f, of a perfect model %.3f\n", r.Members, r.Steps, view.Thousands(uint64(r.Params)), r.Start, r.Floor)
	fmt.Fprintf(out, "held-out loss (relative to the honest run's); of a step's length: one attacker's part, all attackers' part\n\n")
	var rules []string
	for _, row := range r.Rows {
		if row.Attack == study.Honest {
			rules = append(rules, row.Rule)
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "attack\tattackers")
	for _, rule := range rules {
		fmt.Fprintf(w, "\t%s", rule)
	}
	perRule := len(r.Rows) / max(1, len(rules))
	for i := range perRule {
		first := r.Rows[i]
		fmt.Fprintf(w, "\n%s\t%d %%", first.Attack, first.Percent)
		for k := range rules {
			row := r.Rows[k*perRule+i]
			fmt.Fprintf(w, "\t%.3f (%.2f)  %.2f %.2f", row.Loss, row.Relative, row.One, row.All)
		}
	}
	fmt.Fprintln(w)
	return w.Flush()
}
