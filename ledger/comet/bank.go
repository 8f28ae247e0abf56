package comet

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

func (a *api) account(w http.ResponseWriter, r *http.Request) {
	k, err := key.ParsePublic(r.PathValue("key"))
	if err != nil {
		fail(w, http.StatusBadRequest, "%q: want a public key of 64 hexadecimal digits", r.PathValue("key"))
		return
	}
	a.app.hostMu.RLock()
	tokens := a.app.host.Balance(k)
	a.app.hostMu.RUnlock()
	reply(w, http.StatusOK, ledger.Account{Key: k, Tokens: tokens})
}

func (a *api) pools(w http.ResponseWriter, _ *http.Request) {
	a.app.hostMu.RLock()
	names := a.app.host.Pools()
	a.app.hostMu.RUnlock()
	reply(w, http.StatusOK, names)
}

func (a *api) closed(w http.ResponseWriter, _ *http.Request) {
	a.app.hostMu.RLock()
	list := a.app.host.Closed()
	a.app.hostMu.RUnlock()
	reply(w, http.StatusOK, list)
}

func (a *api) ofPool(w http.ResponseWriter, r *http.Request) {
	a.app.hostMu.RLock()
	p, ok := a.app.host.Pool(r.PathValue("pool"))
	a.app.hostMu.RUnlock()
	if !ok {
		fail(w, http.StatusNotFound, "no pool %q on chain %q: GET /v1/pools lists them", r.PathValue("pool"), a.app.genesis.Chain)
		return
	}
	reply(w, http.StatusOK, p)
}

// Account returns the account of a key, proven by a header.
func (c *Client) Account(ctx context.Context, k key.Public) (ledger.Account, error) {
	return provenBy(ctx, c, "/v1/proven/accounts/"+k.String(), func(b []byte) (ledger.Account, wire.Hash, error) {
		tokens, root, err := host.OpenPurse(b, k)
		return ledger.Account{Key: k, Tokens: tokens}, root, err
	})
}

// Pools returns the names of all pools, in order, proven by a header.
func (c *Client) Pools(ctx context.Context) ([]string, error) {
	pools, err := c.allPools(ctx)
	names := []string{}
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return names, err
}

// Pool returns a pool's state, proven by a header. The error is ledger.ErrUnknownPool if there is
// no such pool.
func (c *Client) Pool(ctx context.Context, name string) (host.Pool, error) {
	pools, err := c.allPools(ctx)
	if err != nil {
		return host.Pool{}, err
	}
	for _, p := range pools {
		if p.Name == name {
			return p, nil
		}
	}
	return host.Pool{}, ledger.ErrUnknownPool
}

// Names returns what keys are called, in order of keys, proven by a header.
func (c *Client) Names(ctx context.Context) ([]host.Profile, error) {
	c.mu.Lock()
	known := c.names
	c.mu.Unlock()
	path := "/v1/proven/names"
	if known != nil {
		path += "?known=" + host.NamesHash(known).String()
	}
	list, err := provenBy(ctx, c, path, func(b []byte) ([]host.Profile, wire.Hash, error) { return host.OpenNames(b, known) })
	if err == nil {
		c.mu.Lock()
		c.names = list
		c.mu.Unlock()
	}
	return slices.Clone(list), err
}

// Closed returns the receipts of closed runs, proven by a header.
func (c *Client) Closed(ctx context.Context) ([]host.Receipt, error) {
	return provenBy(ctx, c, "/v1/proven/closed", host.OpenClosed)
}

func (c *Client) allPools(ctx context.Context) ([]host.Pool, error) {
	return provenBy(ctx, c, "/v1/proven/pools", func(b []byte) ([]host.Pool, wire.Hash, error) { return host.OpenPools(c.chain, b) })
}

// first asks the endpoints, in order, and returns the first answer.
func first[T any](ctx context.Context, c *Client, path string) (T, error) {
	var none T
	var errs []error
	for _, e := range c.endpoints {
		var answer T
		b, err := c.get(ctx, e, path)
		if err == nil {
			err = json.Unmarshal(b, &answer)
		}
		if err == nil {
			return answer, nil
		}
		errs = append(errs, err)
	}
	return none, errors.Join(errs...)
}
