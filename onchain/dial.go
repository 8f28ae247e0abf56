// Package onchain finds and reads runs on a chain: it dials the chain that endpoints serve, checks
// a run's specification against its state, and reads what people name runs and machines by: RUN,
// RUN@HOST, tickets, delegations.
package onchain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/ledger/solana"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/verify"
)

// Patience bounds the wait for an answer of the chain, blockPatience that for a block with a
// transaction: a chain that has lost a replica, or a busy machine, takes several times as long as
// usual, and a transaction that was given up may still come.
const (
	Patience      = 15 * time.Second
	blockPatience = time.Minute
)

// DialOptions are the optional parts of Dial.
type DialOptions struct {
	// Remember is the directory that keeps a header of each chain ever talked to, so that no other
	// chain of the same name is believed later; "" keeps none. A chain on this machine is its
	// user's own, and may be made again: no header of it is kept.
	Remember string
	Log      *slog.Logger // nil discards
}

// Dial connects to the chain that the endpoints serve.
func Dial(ctx context.Context, endpoints []string, o DialOptions) (ledger.Chain, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if OnSolana(endpoints) {
		return dialSolana(ctx, endpoints, o)
	}
	var errs []error
	for _, e := range endpoints {
		status, err := comet.Discover(ctx, e)
		if err == nil {
			if err := comet.CheckGenesis(ctx, e); err != nil {
				return nil, fmt.Errorf("%s: %w", Plain(e), err)
			}
			return o.client(status.Chain, endpoints)
		}
		errs = append(errs, fmt.Errorf("%s: %w", Plain(e), reason(err)))
	}
	advice := "entrain chain start runs a replica; --chain URL or $ENTRAIN_CHAIN names one elsewhere"
	if !AllLoopback(endpoints) {
		advice = "does the replica there run, and is its port open? ask who gave you the address; --chain URL or $ENTRAIN_CHAIN names another"
	}
	return nil, fmt.Errorf("reach the chain: %w; %s", errors.Join(errs...), advice)
}

// OnSolana reports whether endpoints are of a chain on Solana.
func OnSolana(endpoints []string) bool { return slices.ContainsFunc(endpoints, solana.IsPlace) }

// dialSolana connects to a chain on Solana. All endpoints are of the same cluster.
func dialSolana(ctx context.Context, endpoints []string, o DialOptions) (ledger.Chain, error) {
	options := solana.Options{Log: o.Log, Rules: verify.Rules}
	for _, e := range endpoints {
		p, err := solana.ParsePlace(e)
		if err != nil {
			return nil, err
		}
		if p.Unnamed() {
			return nil, fmt.Errorf("%s names no program of runs: want solana:URL#PROGRAM, as entrain chain init solana:URL PROGRAM prints it", p.Plain())
		}
		if len(options.Endpoints) > 0 && (p.Program != options.Program || p.Mint != options.Mint) {
			return nil, fmt.Errorf("%s names another program or token than %s: all endpoints must name the same", p.Plain(), Plain(endpoints[0]))
		}
		options.Program, options.Mint = p.Program, p.Mint
		options.Endpoints = append(options.Endpoints, p.Endpoint)
	}
	return solana.NewClient(ctx, options)
}

// reason returns why an address does not answer, without the words of Go's HTTP client.
func reason(err error) error {
	var request *url.Error
	var dial *net.OpError
	if !errors.As(err, &request) {
		return err
	}
	if errors.As(request.Err, &dial) {
		return dial.Err
	}
	return request.Err
}

// client makes a client of the chain, which remembers the chain.
func (o DialOptions) client(chain string, endpoints []string) (ledger.Chain, error) {
	client, err := comet.NewClient(chain, endpoints, o.Log)
	if err != nil {
		return nil, err
	}
	if AllLoopback(endpoints) || o.Remember == "" {
		return client, nil
	}
	if err := client.Remember(filepath.Join(o.Remember, chain+".header")); err != nil {
		return nil, fmt.Errorf("%w; get a header of chain %q from a person you trust (entrain chain show prints it) and name it with --chain URL#HEIGHT:HASH", errors.Join(err, client.Close()), chain)
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

// Run is a run as the chain has it.
type Run struct {
	Spec     spec.Spec
	Text     []byte // the specification as it was published
	Snapshot ledger.Snapshot
}

// GetRun reads a run's specification and state, and checks one against the other.
func GetRun(ctx context.Context, l ledger.Reader, run string) (p Run, err error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	p.Text, err = await(ctx, func(done func([]byte, error)) { l.Spec(ctx, run, done) })
	if errors.Is(err, ledger.ErrUnknownRun) {
		return p, fmt.Errorf("chain %q has no run %q; %s", l.ChainID(), run, meant(ctx, l, run))
	}
	if err != nil {
		return p, fmt.Errorf("specification of run %q: %w", run, err)
	}
	if p.Snapshot, err = GetSnapshot(ctx, l, run); err != nil {
		return p, err
	}
	if got, want := host.SpecHash(p.Text), p.Snapshot.State.Config().SpecHash; got != want {
		return p, fmt.Errorf("specification of run %q has hash %s, the coordinator says %s: the replica is lying or damaged, use another with --chain URL", run, got, want)
	}
	if p.Spec, err = spec.Parse(p.Text, all.Kinds()); err != nil {
		return p, fmt.Errorf("specification of run %q, as the chain has it: %w; it may need a newer entrain", run, err)
	}
	if clocked := p.Snapshot.State.Config().Clock > 0; clocked != p.Spec.Clocked() {
		return p, fmt.Errorf("run %q: exchange.clock is %q in its specification, and the chain counts other blocks: its owner deceives you; do not join it", run, p.Spec.Exchange.Clock)
	}
	if p.Spec.Name != run {
		return p, fmt.Errorf("specification of run %q, as the chain has it, describes run %q", run, p.Spec.Name)
	}
	return p, nil
}

// shownRuns is the number of runs that a message lists; of more it says how to list them.
const shownRuns = 8

// shownDigits is the least number of digits with which screens show a key.
const shownDigits = 8

// meant says which run a name that the chain does not have may stand for.
func meant(ctx context.Context, l ledger.Reader, run string) string {
	chain, ok := l.(ledger.Chain)
	if !ok {
		return "entrain status lists the chain's runs"
	}
	list, err := chain.Runs(ctx)
	var names []string
	for _, r := range list {
		names = append(names, r.Name)
	}
	near := spec.Nearest(run, names)
	switch {
	case near != "":
		return fmt.Sprintf("did you mean %q?", near)
	case len(run) >= shownDigits && strings.Trim(run, "0123456789abcdef") == "":
		return "a key has all of its 64 digits"
	case err != nil || len(names) > shownRuns:
		return "entrain status lists the chain's runs"
	case len(names) == 0:
		return "the chain has none"
	}
	return "the chain has " + strings.Join(names, ", ")
}

// Suggest adds to the error of a transaction about a run that the chain does not have which one may
// be meant.
func Suggest(ctx context.Context, chain ledger.Chain, err error) error {
	refused, ok := errors.AsType[*host.TxError](err)
	if !ok || refused.Code != host.CodeUnknownRun {
		return err
	}
	run, bad := strconv.Unquote(refused.Text)
	if bad != nil {
		return err
	}
	return fmt.Errorf("%w; %s", err, meant(ctx, chain, run))
}

// Open dials the chain that the endpoints serve, and reads the run that a target names. The chain
// must be closed.
func Open(ctx context.Context, endpoints []string, o DialOptions, t Target) (ledger.Chain, Run, error) {
	chain, err := Dial(ctx, endpoints, o)
	if err != nil {
		return nil, Run{}, err
	}
	on, err := Read(ctx, chain, t)
	if err != nil {
		return nil, Run{}, errors.Join(err, chain.Close())
	}
	return chain, on, nil
}

// Read reads the run that a target names.
func Read(ctx context.Context, chain ledger.Chain, t Target) (Run, error) {
	on, err := GetRun(ctx, chain, t.Run)
	if err == nil {
		err = t.Check(chain.ChainID(), on.Snapshot.State.ID())
	}
	return on, err
}

// GetSnapshot reads a run's state.
func GetSnapshot(ctx context.Context, l ledger.Reader, run string) (ledger.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	s, err := await(ctx, func(done func(ledger.Snapshot, error)) {
		first := true
		l.Watch(ctx, run, func(s ledger.Snapshot) {
			if first { // calls never overlap
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

// Submit submits body and waits until it is in a block.
func Submit(ctx context.Context, l ledger.Ledger, body host.Body) error {
	wait := blockPatience
	if l, slow := l.(interface{ Patience() time.Duration }); slow {
		wait = l.Patience()
	}
	late := fmt.Errorf("no block has the transaction after %v, but one may still take it: look at the chain before you repeat the command", wait)
	ctx, cancel := context.WithTimeoutCause(ctx, wait, late)
	defer cancel()
	_, err := await(ctx, func(done func(struct{}, error)) {
		l.Submit(ctx, body, func(err error) { done(struct{}{}, err) })
	})
	return err
}

// AllLoopback reports whether all endpoints are on this machine.
func AllLoopback(endpoints []string) bool { return every(endpoints, netip.Addr.IsLoopback) }

// AllPrivate reports whether all endpoints are on this machine or in a private network.
func AllPrivate(endpoints []string) bool {
	return every(endpoints, func(ip netip.Addr) bool { return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() })
}

// every reports whether all endpoints are at addresses that is accepts. A name other than localhost
// is not.
func every(endpoints []string, is func(netip.Addr) bool) bool {
	for _, e := range endpoints {
		if p, err := solana.ParsePlace(e); err == nil {
			e = p.Endpoint
		}
		u, err := url.Parse(e)
		if err != nil {
			return false
		}
		host := u.Hostname()
		if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !is(ip)) {
			return false
		}
	}
	return true
}

// OnlyRun returns the name of the only run of a chain.
func OnlyRun(ctx context.Context, client ledger.Chain) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	names, err := RunNames(ctx, client)
	if err != nil {
		return "", err
	}
	if len(names) == 1 {
		return names[0], nil
	}
	return "", fmt.Errorf("chain %q has %d runs; name one: %s", client.ChainID(), len(names), strings.Join(names, ", "))
}

// RunNames returns the names of a chain's runs.
func RunNames(ctx context.Context, client ledger.Chain) ([]string, error) {
	runs, err := client.Runs(ctx)
	names := make([]string, len(runs))
	for i, r := range runs {
		names[i] = r.Name
	}
	return names, err
}

// Pools returns a chain's pools.
func Pools(ctx context.Context, client ledger.Chain) (list []host.Pool, err error) {
	names, err := client.Pools(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		p, err := client.Pool(ctx, name)
		if errors.Is(err, ledger.ErrUnknownPool) {
			continue // removed in between
		}
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// PartOf returns the name of a run in which a key has a part, "" if it has none.
func PartOf(ctx context.Context, client ledger.Chain, k key.Public) (string, error) {
	names, err := RunNames(ctx, client)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		snapshot, err := GetSnapshot(ctx, client, name)
		if err != nil {
			return "", err
		}
		s := snapshot.State
		_, member := s.Find(k)
		_, validator := s.Validator(k)
		if member || validator || s.Config().Owner == k {
			return name, nil
		}
	}
	return "", nil
}
