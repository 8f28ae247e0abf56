package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/costs"
	"github.com/entrain-network/entrain/view"
)

// costsCommand counts what messages cost.
func costsCommand(c console) *cobra.Command {
	members := []int{10, 1_000, costs.MembersMax}
	cmd := &cobra.Command{
		Use:   "costs",
		Short: "Count what it costs to accept and to refuse messages",
		Long: `Plays runs of several sizes on a real host. At each stage it delivers every message that is due there,
and dozens of wrong ones made from it: changed, forged, repeated, from others, at another stage. It
prints the most that an accepted and a refused message of each kind took: signatures checked, bytes
hashed (beyond the transaction's ID and signature), places of members looked at, and bytes of memory.
The exit status is 1 if a refusal is dearer than every acceptance of its kind.

The counters are only in programs built with -tags counted.`,
		Example: "  go run -tags counted ./cmd/lab costs\n  go run -tags counted ./cmd/lab costs --members 10,100",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, n := range members {
				if n < costs.MembersMin || n > costs.MembersMax {
					return fmt.Errorf("--members %d: want %d to %d", n, costs.MembersMin, costs.MembersMax)
				}
			}
			rows, err := costs.Run(members...)
			if err != nil {
				return err
			}
			err = c.costs(rows)
			dear := 0
			for _, r := range rows {
				for _, text := range r.Dear {
					c.say("DEAR: %s among %d members: %s", r.Kind, r.Members, text)
					dear++
				}
			}
			if err == nil && dear > 0 {
				err = fmt.Errorf("%d refusals are dearer than the acceptances of their kind", dear)
			}
			return err
		},
	}
	cmd.Flags().IntSliceVar(&members, "members", members, "`numbers` of members")
	return cmd
}

func (c console) costs(rows []costs.Row) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "message\tmembers\tsignatures\thashed\tplaces\tmemory\trefused:\tsignatures\thashed\tplaces\tmemory\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t", r.Kind, view.Thousands(uint64(r.Members)))
		for i, v := range []costs.Cost{r.Accepted, r.Refused} {
			if i > 0 {
				fmt.Fprintf(w, "%s\t", view.Thousands(uint64(r.Refusals)))
			}
			for _, n := range []uint64{v.Signatures, v.Hashed, v.Members, v.Memory} {
				fmt.Fprintf(w, "%s\t", view.Thousands(n))
			}
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
