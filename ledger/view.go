package ledger

import (
	"bytes"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/wire"
)

// View is a run as of the last commit. It stays what it is while the host goes on, and may be read from any goroutine.
type View struct {
	Name    string
	Changed uint64            // the height of the block that changed the state last
	Hash    wire.Hash         // the state's
	State   coordinator.State // not to be written to
}

// Runs returns the names of all runs that were committed, in order.
func (h *Host) Runs() []string {
	var names []string
	for _, r := range h.runs {
		if r.frozen != nil {
			names = append(names, r.name)
		}
	}
	return names
}

// View returns a run as of the last commit; false if there is none of that name.
func (h *Host) View(name string) (View, bool) {
	r, ok := h.committed(name)
	if !ok {
		return View{}, false
	}
	return View{Name: name, Changed: r.height, Hash: r.hash, State: r.view}, true
}

// Spec returns a copy of the bytes published with the run; false if there is none of that name.
func (h *Host) Spec(name string) ([]byte, bool) {
	r, ok := h.committed(name)
	if !ok {
		return nil, false
	}
	return bytes.Clone(r.spec), true
}

// Peers returns a copy of the addresses announced for the run, in order of keys; false if there is none of that name.
func (h *Host) Peers(name string) ([]Peer, bool) {
	r, ok := h.committed(name)
	if !ok {
		return nil, false
	}
	list := make([]Peer, len(r.peers.list))
	for i, p := range r.peers.list {
		list[i] = Peer{Key: p.Key, Addrs: slices.Clone(p.Addrs)}
	}
	return list, true
}

func (h *Host) committed(name string) (*run, bool) {
	i, ok := h.find(name)
	if !ok || h.runs[i].frozen == nil {
		return nil, false
	}
	return h.runs[i], true
}
