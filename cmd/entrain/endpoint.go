package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/spec"
)

// chainFlag adds --chain.
func chainFlag(cmd *cobra.Command, to *[]string) {
	cmd.Flags().StringArrayVar(to, "chain", nil, "`URL` of a replica of the chain, and #HEIGHT:HASH to believe only a chain with this header; may be repeated, the next is asked when one fails (default $ENTRAIN_CHAIN, then "+defaultChain+")")
}

// defaultChain is where chain start serves clients unless told otherwise.
const defaultChain = "http://" + comet.DefaultAPI

// endpoints are the replicas to talk to, by the flag, the environment, or by default.
func (c console) endpoints(flag []string) []string {
	switch {
	case len(flag) > 0:
		return flag
	case c.env("ENTRAIN_CHAIN") != "":
		return strings.Fields(strings.ReplaceAll(c.env("ENTRAIN_CHAIN"), ",", " "))
	}
	return []string{defaultChain}
}

// askFor bounds the wait for an answer of the chain that a person waits for.
const askFor = 15 * time.Second

// dial connects to the chain that the endpoints serve. A log of nil discards.
func (c console) dial(ctx context.Context, flag []string, log *slog.Logger) (ledger.Chain, error) {
	endpoints := c.endpoints(flag)
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	var errs []error
	for _, e := range endpoints {
		status, err := comet.Discover(ctx, e)
		if err == nil {
			return c.trusting(status.Chain, endpoints, log)
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("reach the chain: %w; entrain chain start runs a replica, --chain URL names one elsewhere", errors.Join(errs...))
}

// trusting makes a client that remembers which chain this is: what it was shown once it cannot be shown another of. A chain on
// this machine is its user's own, and may be made anew.
func (c console) trusting(chain string, endpoints []string, log *slog.Logger) (ledger.Chain, error) {
	client, err := comet.NewClient(chain, endpoints, log)
	if err != nil {
		return nil, err
	}
	if allLoopback(endpoints) || c.places.data == "" {
		return client, nil
	}
	path := filepath.Join(c.places.data, "chains", chain+".header")
	if err := client.Remember(path); err != nil {
		return nil, fmt.Errorf("%w; get a header of chain %q from somebody you trust (entrain chain trust prints it) and name it with --chain URL#HEIGHT:HASH", errors.Join(err, client.Close()), chain)
	}
	return client, nil
}

// await turns a call that ends in a callback into one that returns.
func await[T any](ctx context.Context, start func(done func(T, error))) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	start(func(v T, err error) { answers <- answer{v, err} })
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// published is a run as the ledger has it.
type published struct {
	spec     spec.Spec
	text     []byte // of the specification
	snapshot ledger.Snapshot
}

// getRun reads a run's specification and state from the ledger and checks the one against the other.
func getRun(ctx context.Context, l ledger.Reader, run string) (p published, err error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	p.text, err = await(ctx, func(done func([]byte, error)) { l.Spec(ctx, run, done) })
	if errors.Is(err, ledger.ErrUnknownRun) {
		return p, fmt.Errorf("chain %q has no run %q; entrain run list shows those it has", l.ChainID(), run)
	}
	if err != nil {
		return p, fmt.Errorf("specification of run %q: %w", run, err)
	}
	if p.snapshot, err = getSnapshot(ctx, l, run); err != nil {
		return p, err
	}
	if got, want := ledger.SpecHash(p.text), p.snapshot.State.Config().SpecHash; got != want {
		return p, fmt.Errorf("specification of run %q has hash %s, the coordinator says %s: the replica is lying or damaged, use another with --chain URL", run, got, want)
	}
	if p.spec, err = spec.Parse(p.text); err != nil {
		return p, fmt.Errorf("specification of run %q, as the chain has it: %w; it may need a newer entrain", run, err)
	}
	if p.spec.Name != run {
		return p, fmt.Errorf("specification of run %q, as the chain has it, is that of %q", run, p.spec.Name)
	}
	return p, nil
}

// getSnapshot reads a run's state from the ledger.
func getSnapshot(ctx context.Context, l ledger.Reader, run string) (ledger.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	s, err := await(ctx, func(done func(ledger.Snapshot, error)) {
		first := true
		l.Watch(ctx, run, func(s ledger.Snapshot) {
			if first { // calls do not overlap
				first = false
				done(s, nil)
			}
		})
	})
	if err != nil {
		return s, fmt.Errorf("state of run %q: %w", run, err)
	}
	return s, nil
}

// submit submits body and waits until it is in a block.
func submit(ctx context.Context, l ledger.Ledger, body ledger.Body) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	_, err := await(ctx, func(done func(struct{}, error)) {
		l.Submit(ctx, body, func(err error) { done(struct{}{}, err) })
	})
	return err
}

// listenAddrs turns what a person says into multiaddrs: a multiaddr, HOST:PORT, or HOST alone, both of them for QUIC and TCP.
// Without any, all addresses of this machine are used; if the chain is on this machine, so is perhaps everybody else, and loopback
// addresses are told too.
func listenAddrs(flag, endpoints []string) ([]string, error) {
	if len(flag) == 0 {
		if !allLoopback(endpoints) {
			return nil, nil
		}
		return []string{"/ip4/0.0.0.0/udp/0/quic-v1", "/ip4/0.0.0.0/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1", "/ip4/127.0.0.1/tcp/0"}, nil
	}
	var addrs []string
	for _, s := range flag {
		if strings.HasPrefix(s, "/") {
			addrs = append(addrs, s)
			continue
		}
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			host, port = s, "0"
		}
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return nil, fmt.Errorf("--listen %q: want IP:PORT such as 0.0.0.0:4001, or a multiaddr such as /ip4/0.0.0.0/tcp/4001", s)
		}
		family := "ip4"
		if ip.Is6() {
			family = "ip6"
		}
		addrs = append(addrs, fmt.Sprintf("/%s/%s/udp/%s/quic-v1", family, ip, port), fmt.Sprintf("/%s/%s/tcp/%s", family, ip, port))
	}
	return addrs, nil
}

func allLoopback(endpoints []string) bool {
	for _, e := range endpoints {
		u, err := url.Parse(e)
		if err != nil {
			return false
		}
		host := u.Hostname()
		if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}
