package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
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
	watchers, pace, endpoint := 0, 20*time.Second, ""
	cmd := &cobra.Command{
		Use:   "blocks",
		Short: "Measure a replica over the blocks of a busy run",
		Long: `Starts one replica, CometBFT with its files and its API, and drives it as fast as it goes through the
blocks of a run in which members join, witnesses report and 5 % of the results are checked. At each
height it prints the time of a block since the one before, the transactions, and what the replica has
taken: live memory after a collection, with that of the members in the same process, and disk. In the
end a new replica fetches the state.

With --watchers it measures instead what light watchers of the run take. They are in a process of
their own and read what they are sent.`,
		Example: "  lab blocks\n  lab blocks --members 100 --heights 500,1000\n  lab blocks --watchers 10000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			for i, h := range marks {
				if h < 1 || i > 0 && h <= marks[i-1] {
					return fmt.Errorf("--heights: %d, want heights in ascending order", h)
				}
				o.Marks = append(o.Marks, uint64(h))
			}
			if endpoint != "" {
				return blocks.Attach(cmd.Context(), endpoint, watchers, os.Stdin, c.out)
			}
			if o.Dir, err = os.MkdirTemp("", "entrain-blocks-"); err != nil {
				return err
			}
			defer os.RemoveAll(o.Dir)
			if watchers > 0 {
				r, err := blocks.RunWatched(cmd.Context(), blocks.WatchedOptions{
					Options: o, Watchers: watchers, Pace: pace, Program: watchersOf(watchers), Say: func(s string) { c.say("%s", s) },
				})
				if err != nil {
					return err
				}
				return c.watched(r)
			}
			o.Observe = func(m blocks.Mark) {
				c.say("block %d: %v a block, %s of heap, %s on disk", m.Height, m.Wall.Round(time.Microsecond), view.Bytes(m.Heap), view.Bytes(m.Disk))
			}
			r, err := blocks.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return c.blocks(r)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Members, "members", o.Members, "members of the run")
	f.IntSliceVar(&marks, "heights", marks, "`heights` at which to measure")
	f.Uint64Var(&o.Keep, "keep", 0, "blocks that the replica keeps (default: those of a new replica)")
	f.IntVar(&watchers, "watchers", 0, "light watchers to measure a replica with")
	f.DurationVar(&pace, "pace", pace, "least `time` of a round with watchers")
	f.StringVar(&endpoint, "attach", "", "be the watchers of this `endpoint`")
	f.Lookup("attach").Hidden = true
	return cmd
}

// watchersOf returns how this program becomes the watchers of an endpoint.
func watchersOf(n int) func(context.Context, string) *exec.Cmd {
	return func(ctx context.Context, endpoint string) *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			self = os.Args[0]
		}
		cmd := exec.CommandContext(ctx, self, "blocks", "--watchers", strconv.Itoa(n), "--attach", endpoint)
		cmd.Stderr = os.Stderr
		return cmd
	}
}

func (c console) watched(r blocks.Watched) error {
	each := float64(r.Rounds)
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "members\twatchers\tstate\tto begin with\ta round\tof it beats\tframes\treplica, a watcher and round\twatcher, a round\treplica's memory, a watcher\tlate at most\t")
	fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%.0f B\t%.0f B\t%.1f\t%v\t%v\t%s\t%v\t\n", r.Members, r.Watchers, view.Bytes(uint64(r.State)), view.Bytes(uint64(r.Watcher.First)),
		r.Watcher.Bytes/each, r.Watcher.Beats/each, float64(r.Watcher.Frames)/each, r.Replica.Round(time.Microsecond),
		(r.Watcher.Processor / time.Duration(r.Rounds)).Round(time.Microsecond), view.Bytes(r.Memory), r.Watcher.Late.Round(time.Millisecond))
	return w.Flush()
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
