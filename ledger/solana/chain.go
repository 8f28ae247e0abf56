package solana

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/mr-tron/base58"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// Place says where runs are on Solana: an endpoint of a cluster, the program of the runs there, and
// the token of those that are created, if they have any. As text it is
//
//	solana:URL#PROGRAM  or  solana:URL#PROGRAM:MINT
type Place struct {
	Endpoint string
	Program  solana.Program // zero: none, as before a deployment
	Mint     solana.Address // zero: none
}

const scheme = "solana:"

// IsPlace reports whether text names a place on Solana, well or not.
func IsPlace(text string) bool { return strings.HasPrefix(text, scheme) }

// Unnamed reports whether the place names no program.
func (p Place) Unnamed() bool { return p.Program == (solana.Program{}) }

// ParsePlace is the inverse of String.
func ParsePlace(text string) (p Place, err error) {
	rest, is := strings.CutPrefix(text, scheme)
	if !is {
		return p, fmt.Errorf("%s is not on Solana: want solana:URL#PROGRAM", plain(text))
	}
	rest, what, _ := strings.Cut(rest, "#")
	u, err := url.Parse(rest)
	if err != nil || u.Host == "" {
		return p, errors.New("what follows solana: is no URL: want solana:URL#PROGRAM, where URL begins with https:// or http://")
	}
	if u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return p, fmt.Errorf("%s names no endpoint of Solana: want solana:URL#PROGRAM, where URL begins with https:// or http://", plainText(text))
	}
	p.Endpoint = u.String()
	program, mint, token := strings.Cut(what, ":")
	if what != "" {
		var at solana.Address
		at, err = solana.ParseAddress(program)
		p.Program = solana.Program(at)
	}
	if err == nil && token {
		p.Mint, err = solana.ParseAddress(mint)
	}
	if err != nil {
		return p, fmt.Errorf("%s#%s: %w", scheme+plain(p.Endpoint), what, err)
	}
	return p, nil
}

// plainText shows as much of a place as can hold no secret.
func plainText(text string) string {
	rest, _ := strings.CutPrefix(text, scheme)
	return scheme + plain(rest)
}

// String returns the place as text, with what may be secret in the endpoint.
func (p Place) String() string { return p.text(p.Endpoint) }

// Plain returns the place as others may see it: providers put keys into paths and queries.
func (p Place) Plain() string { return p.text(plain(p.Endpoint)) }

func (p Place) text(endpoint string) string {
	s := scheme + endpoint
	if !p.Unnamed() {
		s += "#" + solana.Address(p.Program).String()
		if p.Mint != (solana.Address{}) {
			s += ":" + p.Mint.String()
		}
	}
	return s
}

var _ ledger.Chain = (*Client)(nil)

var (
	errNoToken = errors.New("no token is named: want --chain solana:URL#PROGRAM:MINT, as entrain chain init --supply prints it")
	errHistory = errors.New("endpoints of Solana keep no past states of a run: the log in a participant's state directory has what that saw")
	errNames   = errors.New("keys have no names on Solana")
	errClosed  = errors.New("no receipts are kept of runs closed on Solana")
)

// Account implements ledger.Chain. The tokens are those of the client's mint.
func (c *Client) Account(ctx context.Context, k key.Public) (ledger.Account, error) {
	a := ledger.Account{Key: k, Address: solana.Address(k).String()}
	at := []solana.Address{solana.Address(k)}
	if c.mint != (solana.Address{}) {
		purse, err := solana.Purse(at[0], c.mint)
		if err != nil {
			return a, err
		}
		at = append(at, purse)
	}
	_, list, err := c.accounts(ctx, nil, at...)
	if err != nil {
		return a, err
	}
	if list[0] != nil {
		a.Lamports = list[0].Lamports
	}
	locked, err := c.boxesOf(ctx, at[0])
	if err != nil {
		c.log.Debug("looking for rent", "err", err) // some endpoints do not search accounts
	}
	for _, b := range locked {
		a.Locked += b.lamports
	}
	if len(list) == 2 && list[1] != nil && list[1].Owner == solana.TokenProgram && len(list[1].Data) >= purseAmount+8 {
		r := wire.NewReader(list[1].Data[purseAmount:])
		a.Tokens = r.U64()
	}
	return a, nil
}

// Where amounts are in accounts of the token program.
const (
	purseAmount = 64
	mintSupply  = 36
)

// Runs implements ledger.Chain.
func (c *Client) Runs(ctx context.Context) ([]ledger.RunStatus, error) {
	places, err := c.named(ctx)
	if err != nil {
		return nil, err
	}
	list := []ledger.RunStatus{}
	for _, p := range places {
		s, _, err := c.read(ctx, p.run)
		if errors.Is(err, ledger.ErrUnknownRun) {
			continue // closed
		}
		if err != nil {
			return nil, err
		}
		st := s.State
		list = append(list, ledger.RunStatus{
			Name: st.Config().Name, Phase: st.Phase().String(), Epoch: st.Epoch(), Round: st.Round(), Step: st.Step(), Members: uint32(st.Present()),
			Height: s.Height, Hash: st.Hash(), Bytes: len(st.Bytes()),
		})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	// Where a run is that was closed, another may be.
	return slices.CompactFunc(list, func(a, b ledger.RunStatus) bool { return a.Name == b.Name }), nil
}

// named returns the places of all runs that have a name.
func (c *Client) named(ctx context.Context) (list []place, err error) {
	var r []struct {
		Account account `json:"account"`
	}
	err = c.call(ctx, &r, "getProgramAccounts", solana.Address(c.program), map[string]any{
		"encoding": "base64", "commitment": commitment,
		"filters": []any{map[string]any{"dataSize": solana.NameBytes}, map[string]any{"memcmp": map[string]any{"offset": 0, "bytes": base58.Encode([]byte(solana.NameMagic))}}},
	})
	for _, v := range r {
		if run, spec, ok := solana.Named(v.Account.Data); ok {
			list = append(list, place{run, spec})
		}
	}
	return list, err
}

// Admission implements ledger.Chain: everybody may take part.
func (c *Client) Admission(ctx context.Context, run string) (host.Admission, error) {
	_, err := c.find(ctx, run)
	return host.Admission{Allowed: []key.Public{}, Delegations: []host.Delegation{}}, err
}

// Status implements ledger.Chain.
func (c *Client) Status(ctx context.Context) (ledger.Status, error) {
	s := ledger.Status{Chain: c.chain, Current: true, BlockMs: slotMs}
	var err error
	if s.Height, s.TimeMs, err = c.now(ctx); err != nil || c.mint == (solana.Address{}) {
		return s, err
	}
	_, list, err := c.accounts(ctx, nil, c.mint)
	if err != nil {
		return s, err
	}
	if m := list[0]; m != nil && len(m.Data) == solana.MintBytes {
		r := wire.NewReader(m.Data[mintSupply:])
		s.Supply = r.U64()
	}
	return s, nil
}

// Names implements ledger.Chain: keys have none.
func (c *Client) Names(context.Context) ([]host.Profile, error) { return nil, errNames }

// slotMs is how long a slot of Solana takes.
const slotMs = 400

// now returns the newest slot and the cluster's time, in milliseconds since 1970.
func (c *Client) now(ctx context.Context) (slot, ms uint64, err error) {
	slot, list, err := c.accounts(ctx, nil, solana.Clock)
	if err == nil {
		ms, err = clockOf(list[0])
	}
	return slot, ms, err
}

// clockOf reads the account of the cluster's time.
func clockOf(a *account) (ms uint64, err error) {
	if a == nil || len(a.Data) != clockBytes {
		return 0, errors.New("the cluster has no clock")
	}
	r := wire.NewReader(a.Data[clockSeconds:])
	return r.U64() * 1000, nil
}

// Pools implements ledger.Chain: there are none.
func (c *Client) Pools(context.Context) ([]string, error) { return nil, errPools }

// Pool implements ledger.Chain.
func (c *Client) Pool(context.Context, string) (host.Pool, error) { return host.Pool{}, errPools }

// Closed implements ledger.Chain.
func (c *Client) Closed(context.Context) ([]host.Receipt, error) { return nil, errClosed }

// History implements ledger.Chain.
func (c *Client) History(context.Context, string) ([]host.Change, error) { return nil, errHistory }

// Replicas implements ledger.Chain.
func (c *Client) Replicas(context.Context) ([]host.Replica, error) { return nil, errReplicas }

// Trusted implements ledger.Chain: a client of Solana checks no headers.
func (c *Client) Trusted() (ledger.Anchor, time.Time, bool) {
	return ledger.Anchor{}, time.Time{}, false
}

// Endpoints implements ledger.Chain.
func (c *Client) Endpoints() []string { return slices.Clone(c.endpoints) }
