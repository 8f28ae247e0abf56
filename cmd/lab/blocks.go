package main

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/blocks"
	"github.com/entrain-network/entrain/view"
)

// blocksCommand measures a replica over the blocks of a busy run.
func blocksCommand(c console) *cobra.Command {
	o := blocks.Options{Members: 1000}
	marks := []int{1_000, 10_000, 100_000}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "blocks",
		Short: "Measure a replica over the blocks of a busy run",
		Long: `Starts one replica, CometBFT with its files and its API, and drives it as fast as it goes through the
blocks of a run in which members join, witnesses report and 5 % of the results are checked. At each
height it prints the time of a block since the one before, the transactions, and what the replica has
taken: live memory after a collection, with that of the members in the same process, and disk. In the
end a new replica fetches the state.`,
		Example: "  lab blocks\n  lab blocks --members 100 --heights 500,1000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			for i, h := range marks {
				if h < 1 || i > 0 && h <= marks[i-1] {
					return fmt.Errorf("--heights: %d, want heights in ascending order", h)
				}
				o.Marks = append(o.Marks, uint64(h))
			}
			if o.Dir, err = os.MkdirTemp("", "entrain-blocks-"); err != nil {
				return err
			}
			defer os.RemoveAll(o.Dir)
			o.Observe = func(m blocks.Mark) {
				c.say("block %d: %v a block, %s of heap, %s on disk", m.Height, m.Wall.Round(time.Microsecond), view.Bytes(m.Heap), view.Bytes(m.Disk))
			}
			r, err := blocks.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return c.object(r)
			}
			return c.blocks(r)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Members, "members", o.Members, "members of the run")
	f.IntSliceVar(&marks, "heights", marks, "`heights` at which to measure")
	f.Uint64Var(&o.Keep, "keep", 0, "blocks that the replica keeps (default: those of a new replica)")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (c console) blocks(r blocks.Report) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "block\ttime\tprocessor\tround\tepoch\ttransactions\ttheir bytes\theap\tdisk\tstate\t")
	for _, m := range r.Marks {
		fmt.Fprintf(w, "%s\t%v\t%v\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t\n", view.Thousands(m.Height), m.Wall.Round(10*time.Microsecond), m.Processor.Round(10*time.Microsecond),
			view.Thousands(uint64(m.Rounds)), m.Epochs, view.Thousands(m.Txs), view.Bytes(m.Bytes), view.Bytes(m.Heap), view.Bytes(m.Disk), view.Bytes(uint64(m.State)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.out, "%s transactions came too late; a new replica is current after %v\n", view.Thousands(r.Refused), r.Sync.Round(10*time.Millisecond))
	return err
}
