package main

import (
	"github.com/entrain-network/entrain/participant"
	"github.com/spf13/cobra"
)

// reachFlags adds the flags about how others reach this machine.
func reachFlags(cmd *cobra.Command, r *participant.Reaching) {
	f := cmd.Flags()
	f.StringArrayVar(&r.Listen, "listen", nil, "`address` for peers, IP:PORT or a multiaddr; may be repeated (default: all of this machine's, any free port)")
	f.StringVar(&r.PublicIP, "public-ip", "", "`IP` at which others reach the ports of --listen, where it is none of this machine's own: port forwarding, most clouds")
}

// memberFlags adds the flags of a member besides.
func memberFlags(cmd *cobra.Command, r *participant.Reaching) {
	reachFlags(cmd, r)
	f := cmd.Flags()
	f.StringArrayVar(&r.Relays, "relay", nil, "`multiaddr` of a relay, ending in /p2p/...; may be repeated (default: those found among the run's members, and entrain relay)")
	f.BoolVar(&r.NoRelay, "no-relay", false, "do not help members who cannot be reached to be; also so with --limit-upload")
}
