package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/bench"
)

// benchRobustCommand measures what liars do to a run before they are convicted.
func benchRobustCommand(c console) *cobra.Command {
	var o bench.RobustOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "robust",
		Short: "Measure what liars do to training, by how votes are counted",
		Long: `Trains a small model again and again: honestly, and with a share of the members attacking in all rounds, as if
nobody ever checked them, under each rule by which a run can count votes (optimizer.votes_max). It shows the
held-out loss after the last step, and how much of a round's step is up to one attacker and to all of
them. The numbers are the same on every machine; it takes some minutes.`,
		Example: "  entrain bench robust\n  entrain bench robust --members 60 --steps 80 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Members < 2 || o.Members > robustMembersMax || o.Steps < 10 || o.Steps > benchStepMax {
				return fmt.Errorf("--members %d --steps %d: want 2 to %d members and at least 10 steps", o.Members, o.Steps, robustMembersMax)
			}
			o.Progress = func(what string) { c.say("training: %s", what) }
			return c.benchRobust(cmd.Context(), o, asJSON)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Members, "members", 30, "`number` of members")
	f.IntVar(&o.Steps, "steps", 160, "`steps` to train")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// robustMembersMax is far above what a measurement needs, each member being computed in turn.
const robustMembersMax = 1000

func (c console) benchRobust(ctx context.Context, o bench.RobustOptions, asJSON bool) error {
	r, err := bench.MeasureRobust(ctx, o)
	if err != nil {
		return err
	}
	if asJSON {
		return c.object(r)
	}
	return writeRobust(c.out, r)
}

// writeRobust shows losses by attack and share, a column for each rule.
func writeRobust(out io.Writer, r bench.Robust) error {
	fmt.Fprintf(out, "%d members, %d steps, %s parameters; held-out loss before %.3f, of a perfect model %.3f\n", r.Members, r.Steps, thousands(uint64(r.Params)), r.Start, r.Floor)
	fmt.Fprintf(out, "held-out loss (relative to the honest run's); of a step's length: one attacker's part, all attackers' part\n\n")
	var rules []string
	for _, row := range r.Rows {
		if row.Attack == bench.Honest {
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
