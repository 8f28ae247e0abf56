package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/entrain-network/entrain/participant"
	"github.com/spf13/cobra"
)

func peersCommand(c console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "peers DIR",
		Short: "Show the peers of a participant on this machine: reach, delay, speed, offences",
		Long: `Shows how the members of a run look to a participant on this machine, from its state directory: whether there
is a connection, and whether directly or through a relay; the round trip; how fast blobs came from the peer
and went to it, while there were any; how many bytes in all; and what its offences weigh. At 100 a peer is
banned for a quarter of an hour; five are forgiven every minute. A running participant writes this every
five seconds. Its --metrics tells Prometheus the same.`,
		Example: "  entrain peers ~/.local/share/entrain/runs/my-run-1f0c22e2\n  entrain peers ./a --json | jq '.peers[] | select(.way == \"relay\")'",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := participant.ReadPeers(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return c.object(r)
			}
			return c.showPeers(r)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func (c console) showPeers(r participant.PeersReport) error {
	fmt.Fprintf(c.out, "as of %s\n", r.Time.Local().Format(time.DateTime))
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PEER\tWAY\tROUND TRIP\tDOWN\tUP\tRECEIVED\tSENT\tOFFENCES")
	for _, p := range r.Peers {
		way, rtt, offences := p.Way, "-", fmt.Sprintf("%.0f", p.Weight)
		if way == "" {
			way = "none"
		}
		if p.RTT > 0 {
			rtt = p.RTT.Round(100 * time.Microsecond).String()
		}
		if p.Banned {
			offences = "banned"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s/s\t%s/s\t%s\t%s\t%s\n", p.Key.String()[:16], way, rtt,
			bytesText(uint64(p.Down)), bytesText(uint64(p.Up)), bytesText(p.Received), bytesText(p.Sent), offences)
	}
	return w.Flush()
}
