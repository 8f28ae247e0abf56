package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/lab/study"
	"github.com/entrain-network/entrain/view"
)

// sliceFlags are the flags of lab slice.
type sliceFlags struct {
	study.SliceOptions
	compressions []uint
	rejected     bool
	bytes        bool
}

// sliceCommand compares slices with whole updates.
func sliceCommand(c console) *cobra.Command {
	var o sliceFlags
	cmd := &cobra.Command{
		Use:   "slice",
		Short: "Compare how models learn from slices and from whole updates",
		Long: `Trains the demo's model on the same number of tokens again and again: with codec distro, which
sends the largest coefficients of every block, and with codec slice, which sends all values of one
parameter in --compression. Shows the held-out loss after each quarter, relative to distro at the
same overlap and at overlap 0, and the bytes that a member uploads in a window.

The numbers are the same on every machine. A run of 300 windows takes about a minute of one core.
--rejected also measures rules and settings that were tried and not adopted. --bytes trains nothing
and shows what members upload for models of several sizes.`,
		Example: "  lab slice --bytes\n  lab slice\n  lab slice --windows 100 --compression 2 --compression 32\n  lab slice --rejected",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.slices(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Members, "members", 6, "`number` of members")
	f.IntVar(&o.Windows, "windows", 300, "`windows` to train")
	f.IntVar(&o.Batch, "batch", 16, "`sequences` of a window, of all members together")
	f.IntVar(&o.Threads, "threads", min(2, runtime.GOMAXPROCS(0)), "threads")
	f.StringVar(&o.Text, "data", "", "text `file` to train on (default: Newton's Opticks)")
	f.UintSliceVar(&o.compressions, "compression", nil, "compare only distro and slices of this `compression`; may be repeated")
	f.BoolVar(&o.rejected, "rejected", false, "also measure rules that were not adopted")
	f.BoolVar(&o.bytes, "bytes", false, "show the bytes of slices of several models; train nothing")
	_ = cmd.MarkFlagFilename("data")
	return cmd
}

func (c console) slices(ctx context.Context, o sliceFlags) error {
	if o.bytes {
		return c.sliceBytes(o)
	}
	if o.Members < 1 || o.Members > robustMembersMax || o.Batch < o.Members || o.Batch > numberMax || o.Windows < 8 || o.Windows > numberMax {
		return fmt.Errorf("--members %d --batch %d --windows %d: want 1 to %d members, a sequence for each at least, and 8 windows at least",
			o.Members, o.Batch, o.Windows, robustMembersMax)
	}
	if err := checkThreads(o.Threads); err != nil {
		return err
	}
	o.Rows = study.SliceRows(o.Batch, o.rejected)
	if len(o.compressions) > 0 {
		o.Rows = study.SliceRowsOf(o.compressions)
	}
	o.Progress = func(what string) { c.say("training: %s", what) }
	r, err := study.MeasureSlices(ctx, o.SliceOptions)
	if err != nil {
		return err
	}
	return writeSlices(c.out, r)
}

// sliceBytes shows what members upload.
func (c console) sliceBytes(o sliceFlags) error {
	compressions := []uint32{4, 16, 100, 1000}
	if len(o.compressions) > 0 {
		compressions = nil
		for _, v := range o.compressions {
			compressions = append(compressions, uint32(min(v, slice.CompressionMax+1)))
		}
	}
	rows, err := study.MeasureSliceBytes([]string{"nano", "10m", "124m", "1b"}, compressions)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "model\tparameters\tcompression\treveal\tits values\tideal\tstate slice\tdense\tdense/reveal\tdistro\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d", r.Model, view.Thousands(uint64(r.Params)), r.Compression)
		for _, n := range []int{r.Reveal, r.Values, r.Ideal, r.State, r.Dense} {
			fmt.Fprintf(w, "\t%s", view.Thousands(uint64(n)))
		}
		fmt.Fprintf(w, "\t%.0f\t%s\t\n", float64(r.Dense)/float64(r.Reveal), view.Thousands(uint64(r.Distro)))
	}
	return w.Flush()
}

// writeSlices writes a comparison for people.
func writeSlices(out io.Writer, r study.Slices) error {
	fmt.Fprintf(out, "%s, %s parameters, %d members, %s tokens a run; held-out loss before %.3f; a whole update in binary32 has %s bytes\n\n",
		r.Model, view.Thousands(uint64(r.Params)), r.Members, view.Thousands(r.Tokens), r.Start, view.Thousands(uint64(r.Dense)))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "rule\toverlap\tcompression\tdecay\trate\twindows x batch\t1/4\t1/2\t3/4\tall\tto distro\tto peers\tbytes\tvalues\tstate slice\t")
	for _, x := range r.Runs {
		fmt.Fprintf(w, "%s\t%d\t%d\t%g\t%g\t%d x %d\t", x.Rule, x.Overlap, x.Compression, x.Decay, x.Rate, x.Windows, x.Batch)
		for _, loss := range x.Losses {
			fmt.Fprintf(w, "%.3f\t", loss)
		}
		fmt.Fprintf(w, "%.3f\t%.3f\t%s\t%s\t%s\t\n", x.Relative, x.RelativePeers, view.Thousands(uint64(x.Bytes)), view.Thousands(uint64(x.ValueBytes)), view.Thousands(uint64(x.StateBytes)))
	}
	return w.Flush()
}
