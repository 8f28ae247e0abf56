package founding

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/wire"
)

// Chain is what others need to use a chain or to add a replica to it, and the chain's replicas. The
// header is the newest that this machine trusts; a chain on this machine has none.
type Chain struct {
	Chain    string         `json:"chain"`
	Height   uint64         `json:"height"`
	Hash     wire.Hash      `json:"hash"`
	Time     string         `json:"time"`
	Trusted  []string       `json:"trusted"` // addresses for clients with the header
	Genesis  wire.Hash      `json:"genesis"`
	Peers    []string       `json:"peers"` // addresses for replicas
	Replicas []host.Replica `json:"replicas"`
	Clock    *host.Clock    `json:"clock,omitempty"` // see ledger.Status; not proven
}

// Describe asks a chain what others need.
func Describe(ctx context.Context, client ledger.Chain) (Chain, error) {
	replicas, err := client.Replicas(ctx)
	c := Chain{Chain: client.ChainID(), Trusted: []string{}, Peers: []string{}, Replicas: replicas}
	if status, err := client.Status(ctx); err == nil {
		c.Clock = status.Clock
	}
	anchor, made, known := client.Trusted()
	if err != nil || !known {
		return c, err
	}
	c.Height, c.Hash, c.Time = anchor.Height, anchor.Hash, made.Format(time.RFC3339)
	for _, e := range client.Endpoints() {
		r, err := Reached(ctx, e)
		if err != nil {
			r.Client = e // it may answer to others
		}
		c.Trusted = append(c.Trusted, fmt.Sprintf("%s#%v", r.Client, anchor))
		if r.Peer != "" {
			c.Peers = append(c.Peers, r.Peer)
		}
		if !r.Genesis.IsZero() {
			c.Genesis = r.Genesis
		}
	}
	return c, nil
}

// Write prints the addresses, how to use them, and the replicas.
func (c Chain) Write(w io.Writer) error {
	for _, address := range c.Trusted {
		fmt.Fprintln(w, address)
	}
	if c.Time != "" {
		fmt.Fprintf(w, "\nchain %s, genesis %v\nuse it with:       export ENTRAIN_CHAIN=%s\n",
			c.Chain, c.Genesis, strings.Join(c.Trusted, ","))
		if len(c.Peers) > 0 {
			fmt.Fprintf(w, "add a replica:     entrain chain init %s --public HOST\nreplicas are at:   %s\n",
				strings.Join(c.Trusted, " "), strings.Join(c.Peers, " "))
		} else {
			fmt.Fprintln(w, "no other replica can reach it: chain init --public HOST makes a chain that others can, or set \"peering\" and \"public\" in chain.json")
		}
	}
	return report.Replicas(w, c.Replicas, c.Clock, time.Now())
}
