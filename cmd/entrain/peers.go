package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/lp2p"
)

// peersFile is what a participant writes of its peers into its state directory.
const peersFile = "peers.json"

// peersWritten is how often, peersFileMax how large it is at most: ten thousand peers.
const (
	peersWritten = 5 * time.Second
	peersFileMax = 8 << 20
)

// peersReport is what is in that file.
type peersReport struct {
	Time  time.Time        `json:"time"`
	Addrs []string         `json:"addrs"` // of this participant
	Peers []p2p.PeerStatus `json:"peers"`
}

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
			r, err := readPeers(args[0])
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

func readPeers(dir string) (r peersReport, err error) {
	b, err := atomicfile.ReadBounded(filepath.Join(dir, peersFile), peersFileMax)
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%q is not the state directory of a participant who has met peers; entrain join says where it is", dir)
	}
	if err != nil {
		return r, fmt.Errorf("peers: %w", err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("peers: %s is damaged: %w", filepath.Join(dir, peersFile), err)
	}
	return r, nil
}

func (c console) showPeers(r peersReport) error {
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

// peers is how the others look from here; nothing before the network is there.
func (p *participant) peers() []p2p.PeerStatus {
	if n := p.network.Load(); n != nil {
		return n.Peers()
	}
	return nil
}

// tellPeers writes what is known of the peers, until ctx ends.
func (p *participant) tellPeers(ctx context.Context) {
	tick := time.NewTicker(peersWritten)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if n := p.network.Load(); n != nil {
			p.writePeers(n)
		}
	}
}

func (p *participant) writePeers(n *lp2p.Network) {
	b, err := json.Marshal(peersReport{Time: time.Now().UTC(), Addrs: n.Addrs(), Peers: n.Peers()})
	if err == nil {
		err = atomicfile.WriteBytes(filepath.Join(p.state, peersFile), 0o644, append(b, '\n'))
	}
	if err != nil {
		p.log.Warn("what is known of the peers was not written", "error", err)
	}
}
