package comet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet/headers"
	"github.com/entrain-network/entrain/wire"
)

// ParseAnchor reads what follows the # of an endpoint: HEIGHT:HASH, or nothing for the zero anchor.
// At height 0 the hash is that of the chain's genesis, as GenesisHash returns it.
func ParseAnchor(s string) (ledger.Anchor, error) {
	if s == "" {
		return ledger.Anchor{}, nil
	}
	height, hash, _ := strings.Cut(s, ":")
	var a ledger.Anchor
	var err error
	a.Height, err = strconv.ParseUint(height, 10, 63)
	if err == nil {
		err = wire.DecodeHex(a.Hash[:], strings.ToLower(hash))
	}
	if err != nil || a.Hash.IsZero() {
		return ledger.Anchor{}, fmt.Errorf("header to believe %q: want #HEIGHT:HASH, as entrain chain show prints it", s)
	}
	return a, nil
}

// Trusted returns the newest header that the client trusts, and its time. It is false if there is
// none.
func (c *Client) Trusted() (ledger.Anchor, time.Time, bool) {
	b := c.trust.At(c.trust.Newest())
	if b == nil {
		return ledger.Anchor{}, time.Time{}, false
	}
	return ledger.Anchor{Height: uint64(b.Height), Hash: wire.Hash(b.Hash())}, b.Time, true
}

// Remember makes the client trust the header in a file, if the file exists. When the client is
// closed it writes its newest header there. Another chain can thus not impersonate one that the
// client has seen, not even by a header that an endpoint names, as a stranger's ticket may: what is
// signed for it would count on the true one. Only where the header in the file is too old to
// identify the chain's replicas does a named one replace it; without one the error is
// headers.ErrOld.
// Remember must be called before any request.
func (c *Client) Remember(path string) error {
	c.remember = path
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	named := c.trust.Anchor
	c.trust.Anchor = ledger.Anchor{}
	err = c.trust.Learn(b, time.Now())
	if errors.Is(err, headers.ErrOld) && !named.Hash.IsZero() {
		c.trust.Anchor = named
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	c.remembered = true
	return nil
}

// explain adds other possible reasons for what looks like a lie.
func (c *Client) explain(err error) error {
	switch {
	case !errors.Is(err, headers.ErrLied):
		return err
	case !c.remembered:
		return fmt.Errorf("%w; or an earlier copy of the chain was restored: if its operator says so, start this program again", err)
	}
	return fmt.Errorf("%w; or the chain was recreated under its old name: then remove the remembered header of the old one, %s", err, c.remember)
}

// save writes the newest header.
func (c *Client) save() error {
	block := c.trust.At(c.trust.Newest())
	if c.remember == "" || block == nil {
		return nil
	}
	b, err := headers.Encode(block)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.remember), 0o700); err != nil {
		return err
	}
	return atomicfile.WriteBytes(c.remember, settingsMode, b)
}

// begin gets the header on which trust in all others is based, if it is not there yet.
func (c *Client) begin(ctx context.Context, endpoint string) error {
	height, needed := c.trust.Want()
	if !needed {
		return nil
	}
	b, err := c.get(ctx, endpoint, "/v1/headers?height="+strconv.FormatUint(height, 10))
	if err == nil {
		err = c.trust.Learn(b, time.Now())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", endpoint, err)
	}
	return nil
}

// proven gets an answer, learns the headers that come with it, and returns the rest with the height
// of the header that must prove it.
func (c *Client) proven(ctx context.Context, endpoint, path string) (content []byte, header uint64, err error) {
	if err := c.begin(ctx, endpoint); err != nil {
		return nil, 0, err
	}
	mark := "?"
	if strings.Contains(path, mark) {
		mark = "&"
	}
	b, err := c.get(ctx, endpoint, path+mark+"trusted="+strconv.FormatUint(c.trust.Newest(), 10))
	if err != nil {
		return nil, 0, err
	}
	content, header, err = c.trust.Open(b, time.Now())
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", endpoint, err)
	}
	return content, header, nil
}

// provenAs gets an answer from one endpoint. read parses it and returns the hash of the ledger's
// state that its proof leads to.
func provenAs[T any](ctx context.Context, c *Client, endpoint, path string, read func([]byte) (T, wire.Hash, error)) (T, error) {
	var none T
	b, header, err := c.proven(ctx, endpoint, path)
	if err != nil {
		return none, err
	}
	answer, root, err := read(b)
	if err != nil {
		return none, fmt.Errorf("%s: %w: %w", endpoint, headers.ErrLied, err)
	}
	if err := c.trust.Check(header, root); err != nil {
		return none, fmt.Errorf("%s: %w", endpoint, err)
	}
	return answer, nil
}

// provenBy asks the endpoints, in order, and returns the first answer that is proven.
func provenBy[T any](ctx context.Context, c *Client, path string, read func([]byte) (T, wire.Hash, error)) (T, error) {
	var none T
	var errs []error
	for _, e := range c.endpoints {
		answer, err := provenAs(ctx, c, e, path, read)
		if err == nil {
			return answer, nil
		}
		errs = append(errs, err)
	}
	return none, c.explain(errors.Join(errs...))
}

// ofRun reads a part of a run that comes after the run's proof.
func ofRun[T any](run string, part func(b []byte, p host.RunProof) (T, error)) func([]byte) (T, wire.Hash, error) {
	return func(b []byte) (answer T, root wire.Hash, err error) {
		r := wire.NewReader(b)
		proof := host.ReadRunProof(&r)
		if err := r.Err().OrNil(); err != nil {
			return answer, root, err
		}
		if root, err = proof.Root(run); err != nil {
			return answer, root, err
		}
		answer, err = part(r.Bytes(r.Len()), proof)
		return answer, root, err
	}
}

func provenPath(run, part string) string { return "/v1/proven/runs/" + url.PathEscape(run) + part }

// errOtherPart reports a part of a run that does not match the run's proof.
var errOtherPart = errors.New("this is not what the run's proof names")

// Spec implements ledger.Reader.
func (c *Client) Spec(ctx context.Context, run string, done func([]byte, error)) {
	ask(ctx, c, done, func(ctx context.Context, endpoint string) ([]byte, error) {
		return provenAs(ctx, c, endpoint, provenPath(run, "/spec"), ofRun(run, func(b []byte, p host.RunProof) ([]byte, error) {
			if host.SpecHash(b) != p.Spec {
				return nil, errOtherPart
			}
			return b, nil
		}))
	})
}

// Peers implements ledger.Reader. It reads the addresses only if they have changed since it read
// them last: members ask every other second, and the list grows with the members. While it watches
// the run, the stream names them by a hash; else it asks for the run's proof. A replica that denies
// a change could as well answer with an old proof.
func (c *Client) Peers(ctx context.Context, run string, done func([]host.Peer, error)) {
	ask(ctx, c, done, func(ctx context.Context, endpoint string) ([]host.Peer, error) {
		c.mu.Lock()
		last, known := c.peers[run]
		heard := c.heard[run]
		c.mu.Unlock()
		if known && time.Since(heard.at) < silenceMax && heard.peers == binary.LittleEndian.Uint64(last.hash[:]) {
			return last.list, nil
		}
		if known {
			if p, err := c.proofOf(ctx, endpoint, run); err != nil {
				return nil, err
			} else if p.Peers == last.hash {
				return last.list, nil
			}
		}
		now, err := provenAs(ctx, c, endpoint, provenPath(run, "/peers"), ofRun(run, func(b []byte, p host.RunProof) (runPeers, error) {
			list, hash, err := host.OpenPeers(b)
			if err == nil && hash != p.Peers {
				err = errOtherPart
			}
			return runPeers{hash, list}, err
		}))
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.peers[run] = now
		c.mu.Unlock()
		return now.list, nil
	})
}

// hear notes what a stream says of a run's addresses.
func (c *Client) hear(run string, peers uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard[run] = heard{peers, time.Now()}
}

// proofOf returns the proof of a run's present state.
func (c *Client) proofOf(ctx context.Context, endpoint, run string) (host.RunProof, error) {
	return provenAs(ctx, c, endpoint, provenPath(run, ""), ofRun(run, func(_ []byte, p host.RunProof) (host.RunProof, error) { return p, nil }))
}

// Replicas returns the chain's replicas and candidates, proven by a header.
func (c *Client) Replicas(ctx context.Context) ([]host.Replica, error) {
	return provenBy(ctx, c, "/v1/proven/replicas", host.OpenReplicas)
}

// otherThan returns an endpoint that is not the given one and has not lied; empty if there is none.
func (c *Client) otherThan(endpoint string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var others []string
	for i, e := range c.endpoints {
		if e != endpoint && time.Now().After(c.liars[i]) {
			others = append(others, e)
		}
	}
	if len(others) == 0 {
		return ""
	}
	return others[c.chance.Uint64n(uint64(len(others)))]
}

// Endpoints returns the URLs of the replicas that the client talks to.
func (c *Client) Endpoints() []string { return slices.Clone(c.endpoints) }

// FetchGenesis asks an endpoint for its status and its chain's genesis. Neither is proven.
func FetchGenesis(ctx context.Context, at string) (ledger.Status, []byte, error) {
	status, err := Discover(ctx, at)
	if err != nil {
		return status, nil, err
	}
	at, _, err = endpoint(at)
	if err != nil {
		return status, nil, err
	}
	t := transport()
	defer t.CloseIdleConnections()
	c := &Client{http: caller(t), chain: status.Chain}
	b, err := c.get(ctx, at, "/v1/genesis")
	return status, b, err
}

// GenesisHash returns a hash by which people can compare genesis files.
func GenesisHash(genesis []byte) wire.Hash { return wire.Sum("entrain/ledger/comet/genesis", genesis) }

// CheckGenesis returns an error if an endpoint names a genesis, as in "http://127.0.0.1:7370#0:HASH",
// and serves a chain with another.
func CheckGenesis(ctx context.Context, at string) error {
	clean, anchor, err := endpoint(at)
	if err != nil || anchor.Height > 0 || anchor.Hash.IsZero() {
		return err
	}
	status, genesis, err := FetchGenesis(ctx, at)
	if err == nil && GenesisHash(genesis) != anchor.Hash {
		err = fmt.Errorf("another chain answers, named %q, not the one you started last: start yours with entrain chain start, or name this one with --chain %s", status.Chain, clean)
	}
	return err
}
