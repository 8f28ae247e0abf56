package comet

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger/comet/headers"
	"github.com/entrain-network/entrain/wire"
)

// Answers that carry their proof. All but headers and genesis are
//
//	proven = U32 count | count × Var header | U64 height of the header that proves it |
//	         the requested content, with its proof
//
// The headers lead from the one that the client trusts, whose height it names in the parameter
// "trusted", to the one that proves the answer.
func (a *api) routesOfProofs(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/genesis", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(a.genesis)
	})
	mux.HandleFunc("GET /v1/headers", a.headers)
	mux.HandleFunc("GET /v1/proven/runs/{run}", a.ofRun(func(*host.Host, string) ([]byte, bool) { return nil, true }))
	mux.HandleFunc("GET /v1/proven/runs/{run}/spec", a.ofRun(func(h *host.Host, run string) ([]byte, bool) { return h.Spec(run) }))
	mux.HandleFunc("GET /v1/proven/runs/{run}/peers", a.ofRun((*host.Host).PeersBytes))
	mux.HandleFunc("GET /v1/proven/runs/{run}/admission", a.ofRun((*host.Host).AdmissionBytes))
	mux.HandleFunc("GET /v1/proven/accounts/{key}", a.provenAccount)
	mux.HandleFunc("GET /v1/proven/pools", func(w http.ResponseWriter, r *http.Request) { a.prove(w, r, found((*host.Host).ProvePools)) })
	mux.HandleFunc("GET /v1/proven/names", a.provenNames)
	mux.HandleFunc("GET /v1/proven/closed", func(w http.ResponseWriter, r *http.Request) { a.prove(w, r, found((*host.Host).ProveClosed)) })
	mux.HandleFunc("GET /v1/proven/replicas", func(w http.ResponseWriter, r *http.Request) { a.prove(w, r, found((*host.Host).ProveReplicas)) })
	mux.HandleFunc("GET "+snapshotPath, func(w http.ResponseWriter, r *http.Request) {
		deadline(w, syncWait)
		a.prove(w, r, found(func(h *host.Host) []byte { return h.Append(nil) }))
	})
}

// snapshotPath is the path at which new replicas fetch the whole state, of at most snapshotMax
// bytes with its proof.
const (
	snapshotPath = "/v1/proven/snapshot"
	snapshotMax  = 2 * host.StateBytesMax
)

func found(f func(*host.Host) []byte) func(*host.Host) ([]byte, bool) {
	return func(h *host.Host) ([]byte, bool) { return f(h), true }
}

// ofRun answers with a part of a run, after the run's proof.
func (a *api) ofRun(part func(*host.Host, string) ([]byte, bool)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		run := r.PathValue("run")
		a.prove(w, r, func(h *host.Host) ([]byte, bool) {
			proof, ok := h.ProveRun(run)
			b, known := part(h, run)
			return append(proof.Append(nil), b...), ok && known
		})
	}
}

func (a *api) provenAccount(w http.ResponseWriter, r *http.Request) {
	k, err := key.ParsePublic(r.PathValue("key"))
	if err != nil {
		fail(w, http.StatusBadRequest, "%q: want a public key of 64 hexadecimal digits", r.PathValue("key"))
		return
	}
	a.prove(w, r, found(func(h *host.Host) []byte { return h.ProvePurse(k) }))
}

// provenNames answers with what keys are called, unless the client knows it.
func (a *api) provenNames(w http.ResponseWriter, r *http.Request) {
	known, err := wire.ParseHash(r.FormValue("known"))
	if err != nil && r.FormValue("known") != "" {
		fail(w, http.StatusBadRequest, "known=%q: want a hash of 64 hexadecimal digits", r.FormValue("known"))
		return
	}
	a.prove(w, r, found(func(h *host.Host) []byte { return h.ProveNames(known) }))
}

// proofWait bounds the wait for the block whose header has the hash of the present state: the next
// one.
const proofWait = 5 * time.Second

// prove answers with the result of make for the ledger's present state, once a header proves it.
func (a *api) prove(w http.ResponseWriter, r *http.Request, make func(*host.Host) ([]byte, bool)) {
	trusted, ok := number(w, r, "trusted")
	if !ok {
		return
	}
	a.app.hostMu.RLock()
	b, ok := make(a.app.host)
	root := a.app.hash
	a.app.hostMu.RUnlock()
	if !ok {
		a.noRun(w, r)
		return
	}
	header, err := a.headerOf(r, root)
	if err != nil {
		fail(w, http.StatusServiceUnavailable, "%v", err)
		return
	}
	way, err := a.way(trusted, header)
	if err != nil {
		fail(w, http.StatusGone, "%v", err)
		return
	}
	answer := wire.AppendU32(nil, uint32(len(way)))
	for _, block := range way {
		answer = wire.AppendVar(answer, block)
	}
	w.Header().Set("Content-Type", octets)
	w.Write(append(wire.AppendU64(answer, header), b...))
}

// headerOf waits for the header that has a hash of the state.
func (a *api) headerOf(r *http.Request, root wire.Hash) (uint64, error) {
	return a.waitFor(r, func() (uint64, <-chan struct{}) { return a.app.hub.headerOf(root) })
}

// waitFor waits until look returns a header.
func (a *api) waitFor(r *http.Request, look func() (uint64, <-chan struct{})) (uint64, error) {
	patience := time.NewTimer(proofWait)
	defer patience.Stop()
	for {
		header, wait := look()
		if wait == nil {
			return header, nil
		}
		select {
		case <-wait:
		case <-patience.C:
			return 0, fmt.Errorf("no block has proven the state for %v: the chain stands still, try another replica", proofWait)
		case <-r.Context().Done():
			return 0, r.Context().Err()
		case <-a.ending.Done():
			return 0, fmt.Errorf("the replica is stopping")
		}
	}
}

// way returns the encoded headers that lead from a trusted one to another.
func (a *api) way(from, to uint64) ([][]byte, error) {
	blocks, err := a.lights.Way(int64(from), int64(to))
	if err != nil {
		return nil, err
	}
	var list [][]byte
	for _, block := range blocks {
		b, err := headers.Encode(block)
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

// block returns the encoded header of a height.
func (a *api) block(height uint64) ([]byte, error) {
	block, err := a.lights.At(int64(height))
	if err != nil {
		return nil, err
	}
	return headers.Encode(block)
}

// same reports whether the same replicas sign two headers.
func (a *api) same(one, other uint64) bool {
	b, c := a.lights.Blocks.LoadBlockMeta(int64(one)), a.lights.Blocks.LoadBlockMeta(int64(other))
	return b != nil && c != nil && bytes.Equal(b.Header.ValidatorsHash, c.Header.ValidatorsHash)
}

// showWay writes frames with the headers that lead from a trusted one to another.
func (a *api) showWay(w http.ResponseWriter, from, to uint64) error {
	way, err := a.way(from, to)
	for _, block := range way {
		if _, err := w.Write(appendLight(nil, block)); err != nil {
			return err
		}
	}
	return err
}

// headers answers with the header of one height, or the newest one.
func (a *api) headers(w http.ResponseWriter, r *http.Request) {
	height, ok := number(w, r, "height")
	if !ok {
		return
	}
	if height == 0 { // the first may be on its way yet
		var err error
		if height, err = a.waitFor(r, a.app.hub.newest); err != nil {
			fail(w, http.StatusServiceUnavailable, "%v", err)
			return
		}
	}
	b, err := a.block(height)
	if err != nil {
		fail(w, http.StatusGone, "%v", err)
		return
	}
	w.Header().Set("Content-Type", octets)
	w.Write(b)
}

// number reads a parameter that is a height. It returns 0 if the parameter is missing.
func number(w http.ResponseWriter, r *http.Request, name string) (uint64, bool) {
	s := r.FormValue(name)
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil && s != "" {
		fail(w, http.StatusBadRequest, "%s=%q: want a height, 0 or nothing for none", name, s)
		return 0, false
	}
	return n, true
}
