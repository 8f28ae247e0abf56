package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/bench"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/exact"
)

// sliceFlags are the flags of bench slice.
type sliceFlags struct {
	bench.SliceOptions
	compressions []uint
	rejected     bool
	bytes        bool
	asJSON       bool
}

// benchSliceCommand compares slices with whole updates.
func benchSliceCommand(c console) *cobra.Command {
	var o sliceFlags
	cmd := &cobra.Command{
		Use:   "slice",
		Short: "Compare how models learn from slices and from whole updates",
		Long: `Trains the demo's model on the demo's text again and again, always for the same number of tokens: with
codec distro, which sends something of every block, and with codec slice, which sends all of one in so
many parameters. It shows the held-out loss after each quarter, relative to distro at the same overlap and
to distro as runs of peers have it, and the bytes that a member uploads in a window.

The numbers are the same on every machine. A run of 300 windows takes about a minute of one core; with
--rejected, rules and settings are measured too that were tried and not taken. --bytes trains nothing, and
shows what members upload for models of several sizes.`,
		Example: "  entrain bench slice --bytes\n  entrain bench slice\n  entrain bench slice --windows 100 --compression 2 --compression 32\n  entrain bench slice --rejected --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.benchSlice(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Members, "members", 6, "`number` of members")
	f.IntVar(&o.Windows, "windows", 300, "`windows` to train")
	f.IntVar(&o.Batch, "batch", 16, "`sequences` of a window, of all members together")
	f.IntVar(&o.Threads, "threads", min(2, runtime.GOMAXPROCS(0)), "threads")
	f.StringVar(&o.Text, "data", "", "text `file` to train on (default: Newton's Opticks, from the Go installation)")
	f.UintSliceVar(&o.compressions, "compression", nil, "compare only distro and slices of this `compression`; may be repeated")
	f.BoolVar(&o.rejected, "rejected", false, "measure what was tried and not taken too")
	f.BoolVar(&o.bytes, "bytes", false, "show bytes of slices of several models, and train nothing")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	_ = cmd.MarkFlagFilename("data")
	return cmd
}

func (c console) benchSlice(ctx context.Context, o sliceFlags) error {
	if o.bytes {
		return c.benchSliceBytes(o)
	}
	if o.Members < 1 || o.Members > robustMembersMax || o.Batch < o.Members || o.Batch > benchStepMax || o.Windows < 8 || o.Windows > benchStepMax {
		return fmt.Errorf("--members %d --batch %d --windows %d: want 1 to %d members, a sequence for each at least, and 8 windows at least",
			o.Members, o.Batch, o.Windows, robustMembersMax)
	}
	if o.Threads < 1 || o.Threads > exact.MaxWorkers {
		return fmt.Errorf("--threads %d: want 1 to %d", o.Threads, exact.MaxWorkers)
	}
	if o.Text == "" {
		var err error
		if o.Text, err = opticks(ctx); err != nil {
			return err
		}
	}
	o.Rows = bench.SliceRows(o.Batch, o.rejected)
	if len(o.compressions) > 0 {
		o.Rows = bench.SliceRowsOf(o.compressions)
	}
	o.Progress = func(what string) { c.say("training: %s", what) }
	r, err := bench.MeasureSlices(ctx, o.SliceOptions)
	if err != nil {
		return err
	}
	if o.asJSON {
		return c.object(r)
	}
	return writeSlices(c.out, r)
}

// benchSliceBytes shows what members upload.
func (c console) benchSliceBytes(o sliceFlags) error {
	compressions := []uint32{4, 16, 100, 1000}
	if len(o.compressions) > 0 {
		compressions = nil
		for _, v := range o.compressions {
			compressions = append(compressions, uint32(min(v, slice.CompressionMax+1)))
		}
	}
	rows, err := bench.MeasureSliceBytes([]string{"nano", "10m", "124m", "1b"}, compressions)
	if err != nil {
		return err
	}
	if o.asJSON {
		return c.object(rows)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "model\tparameters\tcompression\treveal\tits values\tideal\tstate slice\tdense\tdense/reveal\tdistro\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d", r.Model, thousands(uint64(r.Params)), r.Compression)
		for _, n := range []int{r.Reveal, r.Values, r.Ideal, r.State, r.Dense} {
			fmt.Fprintf(w, "\t%s", thousands(uint64(n)))
		}
		fmt.Fprintf(w, "\t%.0f\t%s\t\n", float64(r.Dense)/float64(r.Reveal), thousands(uint64(r.Distro)))
	}
	return w.Flush()
}

// writeSlices is a comparison for people.
func writeSlices(out io.Writer, r bench.Slices) error {
	fmt.Fprintf(out, "%s, %s parameters, %d members, %s tokens a run; held-out loss before %.3f; a whole update in binary32 has %s bytes\n\n",
		r.Model, thousands(uint64(r.Params)), r.Members, thousands(r.Tokens), r.Start, thousands(uint64(r.Dense)))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "rule\toverlap\tcompression\tdecay\trate\twindows x batch\t1/4\t1/2\t3/4\tall\tto distro\tto peers\tbytes\tvalues\tstate slice\t")
	for _, x := range r.Runs {
		fmt.Fprintf(w, "%s\t%d\t%d\t%g\t%g\t%d x %d\t", x.Rule, x.Overlap, x.Compression, x.Decay, x.Rate, x.Windows, x.Batch)
		for _, loss := range x.Losses {
			fmt.Fprintf(w, "%.3f\t", loss)
		}
		fmt.Fprintf(w, "%.3f\t%.3f\t%s\t%s\t%s\t\n", x.Relative, x.RelativePeers, thousands(uint64(x.Bytes)), thousands(uint64(x.ValueBytes)), thousands(uint64(x.StateBytes)))
	}
	return w.Flush()
}
