package main

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/p2p/lp2p"
)

// reaching is how a machine is reached by others, and helps them to be.
type reaching struct {
	listen   []string
	relays   []string
	publicIP string
	noRelay  bool
}

func (r *reaching) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&r.listen, "listen", nil, "`address` for peers, IP:PORT or a multiaddr; may be repeated (default: all of this machine's, any free port)")
	f.StringVar(&r.publicIP, "public-ip", "", "`IP` at which others reach the ports of --listen, where it is none of this machine's own: port forwarding, most clouds")
}

// memberFlags are those of who takes part, besides.
func (r *reaching) memberFlags(cmd *cobra.Command) {
	r.flags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&r.relays, "relay", nil, "`multiaddr` of a relay, ending in /p2p/...; may be repeated (default: those found among the run's members, and entrain relay)")
	f.BoolVar(&r.noRelay, "no-relay", false, "do not help members who cannot be reached to be; also so with --limit-upload")
}

func (r *reaching) check() error {
	if r.publicIP == "" {
		return nil
	}
	if _, err := netip.ParseAddr(r.publicIP); err != nil {
		return fmt.Errorf("--public-ip %q: want an address such as 203.0.113.7", r.publicIP)
	}
	if len(r.listen) == 0 {
		return errors.New("--public-ip: say also at which port others reach this machine, such as --listen 0.0.0.0:4001")
	}
	return nil
}

// options fills in where to listen and how to be reached. Circuits are those of a relay that serves a run with a model of so many bytes.
func (r *reaching) options(o *lp2p.Options, endpoints []string, model uint64) (err error) {
	if o.Listen, err = lp2p.ListenAddrs(r.listen, onchain.AllLoopback(endpoints)); err != nil {
		return err
	}
	o.Relays, o.PublicIP = r.relays, r.publicIP
	if r.publicIP != "" {
		o.Reach = lp2p.ReachPublic
	}
	if !r.noRelay && o.Upload == 0 {
		o.Relay = &lp2p.RelayLimits{CircuitBytes: circuitBytes(model)}
	}
	return nil
}

// circuitBytes is what one circuit may carry: the model twice over, so that a newcomer gets it in one, and results besides.
func circuitBytes(model uint64) uint64 { return 2*model + lp2p.CircuitBytesDefault }
