package host

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// The leaves of the state's hash: see the package comment. Each can be proven without the others.
const (
	leafGenesis  = 0
	leafMark     = 1
	leafKeys     = 2 // nonces and names
	leafPurses   = 3
	leafPools    = 4
	leafReplicas = 5
	leafRuns     = 6
	leafClosed   = 7
	leafCount    = 8
)

// mark is the last block that changed anything. It brings into the hash what changes with every
// block: so a state with its hash proves the time and the seed too, and a block that changes
// nothing else leaves the hash alone.
type mark struct {
	height, timeMs uint64
	seed           wire.Hash
}

func (m mark) append(dst []byte) []byte {
	return wire.AppendHash(wire.AppendU64(wire.AppendU64(dst, m.height), m.timeMs), m.seed)
}

func readMark(r *wire.Reader) mark { return mark{height: r.U64(), timeMs: r.U64(), seed: r.Hash()} }

// Commit closes the block and returns the hash of the whole state, which a block without changes
// leaves as it was.
func (h *Host) Commit() wire.Hash {
	for _, r := range h.runs {
		if !same(r.live, r.frozen) {
			r.height, r.changedMs = h.height, h.timeMs
			r.freeze()
			r.history.Add(Change{Height: h.height, TimeMs: h.timeMs, Hash: r.hash}.leaf())
		}
	}
	if rest, _ := h.roots(); rest != h.rest {
		h.rest, h.mark = rest, mark{height: h.height, timeMs: h.timeMs, seed: h.seed}
	}
	return h.Hash()
}

// Hash returns what Commit returned last.
func (h *Host) Hash() wire.Hash {
	_, leaves := h.roots()
	return merkle.Root(leaves)
}

// roots returns all leaves of the state's hash, and a hash of all but the mark.
func (h *Host) roots() (rest wire.Hash, leaves []wire.Hash) {
	leaves = make([]wire.Hash, leafCount)
	if h.genesisLeaf.IsZero() {
		h.genesisLeaf = wire.Sum("entrain/ledger/genesis", appendGenesis(nil, h.genesis))
	}
	leaves[leafGenesis] = h.genesisLeaf
	leaves[leafKeys] = keysLeaf(h.accounts.sum(), h.names.sum())
	leaves[leafPurses], leaves[leafPools] = h.bank.sums()
	leaves[leafReplicas] = h.replicas.sum()
	leaves[leafRuns] = merkle.Root(h.runLeaves())
	leaves[leafClosed] = h.archive.sum()
	rest = merkle.Root(leaves)
	leaves[leafMark] = wire.Sum("entrain/ledger/mark", h.mark.append(nil))
	return rest, leaves
}

func (h *Host) runLeaves() []wire.Hash {
	var list []wire.Hash
	for _, r := range h.runs {
		list = append(list, r.proof().leaf(r.name))
	}
	return list
}

// freeze makes the present state the one that readers get. It hashes the pages that have changed:
// most of a large run's state seldom does.
func (r *run) freeze() {
	const size = coordinator.PageBytes
	if r.frozen == nil {
		r.pages = make([]merkle.Hash, uint(len(r.live))/size)
	}
	for i := range r.pages {
		page := r.live[i*size:][:size]
		if r.frozen == nil || !same(page, r.frozen[i*size:][:size]) {
			r.pages[i] = merkle.Leaf(page)
		}
	}
	r.frozen, r.hash = slices.Clone(r.live), merkle.Root(r.pages)
	view, err := coordinator.Open(r.frozen)
	if err != nil {
		panic(text("host: run ", quote(r.name), ": state of its own making: ", err))
	}
	r.view = view
}

// Due reports whether a block without transactions at the given time would change anything: a
// deadline of a run has passed, or a run counts the chain's blocks.
func (h *Host) Due(nowMs uint64) bool {
	nowMs = max(h.timeMs, nowMs)
	for _, r := range h.runs {
		if r.frozen != nil && (r.state.CountsBlocks() && !r.clocked || r.expires(nowMs) || h.idle(r, nowMs) || h.ticks(r, nowMs)) {
			return true
		}
	}
	return false
}

// ticks tries a tick on a copy of the state.
func (h *Host) ticks(r *run, nowMs uint64) bool {
	if r.scratch == nil {
		r.scratch = slices.Clone(r.live)
		trial, err := coordinator.Open(r.scratch)
		if err != nil {
			panic(text("host: run ", quote(r.name), ": state of its own making: ", err))
		}
		r.trial = trial
	}
	copy(r.scratch, r.live)
	env := h.env(r, key.Public{})
	env.NowMs, env.Height = nowMs, h.height+1
	_ = r.trial.Apply(h.clocked(r, env), coordinator.Tick{})
	return !same(r.scratch, r.live)
}
