package participant

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/p2p/lp2p"
)

// Reaching says how others reach this machine, and whether it helps others to be reached.
type Reaching struct {
	Listen   []string
	Relays   []string
	PublicIP string
	NoRelay  bool
}

func (r *Reaching) Check() error {
	if r.PublicIP == "" {
		return nil
	}
	if _, err := netip.ParseAddr(r.PublicIP); err != nil {
		return fmt.Errorf("--public-ip %q: want an address such as 203.0.113.7", r.PublicIP)
	}
	if len(r.Listen) == 0 {
		return errors.New("--public-ip: say also at which port others reach this machine, such as --listen 0.0.0.0:4001")
	}
	return nil
}

// options fills in where to listen and how to be reached. model is the size in bytes of the model,
// which circuits must carry.
func (r *Reaching) options(o *lp2p.Options, endpoints []string, model uint64) (err error) {
	if o.Listen, err = lp2p.ListenAddrs(r.Listen, onchain.AllLoopback(endpoints)); err != nil {
		return err
	}
	o.Relays, o.PublicIP = r.Relays, r.PublicIP
	o.PublicOnly = !onchain.AllPrivate(endpoints) && !r.private()
	if r.PublicIP != "" {
		o.Reach = lp2p.ReachPublic
	}
	if !r.NoRelay && o.Upload == 0 {
		o.Relay = &lp2p.RelayLimits{CircuitBytes: circuitBytes(model)}
	}
	return nil
}

// private reports whether the user named a private address to listen on, so that peers in the same
// private network are dialed.
func (r *Reaching) private() bool {
	return slices.ContainsFunc(r.Listen, func(s string) bool {
		at, err := netip.ParseAddrPort(s)
		return err == nil && (at.Addr().IsPrivate() || at.Addr().IsLoopback() || at.Addr().IsLinkLocalUnicast())
	})
}

// circuitBytes returns what one circuit may carry: the model twice, so that a newcomer gets it in
// one, and results besides.
func circuitBytes(model uint64) uint64 { return 2*model + lp2p.CircuitBytesDefault }
