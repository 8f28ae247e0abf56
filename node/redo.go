package node

import (
	"slices"
	"sort"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/wire"
)

// A state file is some seconds old when everybody's power is cut, and the parameters agreed on
// since would be lost. So a node also writes down the accepted set of each round that it applies:
// kilobytes where the model has megabytes. When it starts it applies those that lead to the agreed
// parameters.

// SetStore is a [Store] that also keeps the sets that were applied since the last save. SaveSet
// must be durable when it returns. DropSets deletes those of rounds up to the given one. LoadSets
// returns all that can be trusted, with an error about the others.
type SetStore interface {
	Store
	SaveSet(s SavedSet) error
	DropSets(to coordinator.Round) error
	LoadSets() ([]SavedSet, error)
}

// SavedSet is an accepted set that makes the parameters of the start of round To, with the root
// Params, from those with the root From.
type SavedSet struct {
	Run          wire.Hash
	To           coordinator.Round
	Step         coordinator.Step
	From, Params wire.Hash
	Payloads     [][]byte // as Engine.Apply takes them, or the update that they make alone
}

// saveSet writes down a set that was applied, unless the sets since the last save are larger than
// the model.
func (n *Node) saveSet(a client.Apply, from, to wire.Hash, payloads [][]byte) {
	store, ok := n.cfg.Store.(SetStore)
	if !ok {
		return
	}
	for _, p := range payloads {
		n.save.sets += uint64(len(p))
	}
	if n.save.sets > 4*uint64(n.cfg.Engine.ParamsLen()) {
		return
	}
	var failed error
	n.cfg.Loop.Work(0, func() {
		failed = store.SaveSet(SavedSet{Run: n.cfg.ID, To: a.To, Step: a.Step, From: from, Params: to, Payloads: payloads})
	}, func() {
		if failed != nil {
			n.note("keeping the accepted set: " + failed.Error())
		}
	})
}

// redo applies the sets that were kept to the saved parameters, if they lead to the agreed ones,
// and returns these and their round. Sets that lead on from there come back as they are: what the
// run made of their rounds is for the machine to compare. It is called off the loop.
func (n *Node) redo(v *blobs.Version, round coordinator.Round, agreed wire.Hash) (*blobs.Version, coordinator.Round, []SavedSet, error) {
	store, ok := n.cfg.Store.(SetStore)
	if !ok {
		return v, round, nil, nil
	}
	sets, err := store.LoadSets()
	sort.Slice(sets, func(i, j int) bool { return sets[i].To < sets[j].To })
	var way []SavedSet
	at, there := v.Root, 0
	for _, s := range sets {
		if s.Run == n.cfg.ID && s.From == at {
			way, at = append(way, s), s.Params
		}
		if at == agreed {
			there = len(way)
		}
	}
	if there == 0 {
		return v, round, way, err
	}
	values := n.cfg.Engine.Load(slices.Clone(engine.Values(v.Values)))
	for _, s := range way[:there] {
		if err := n.applySet(values, s.Payloads, s.Step); err != nil {
			return v, round, nil, err
		}
	}
	if made := n.params.Measured(values); made.Root == agreed {
		n.params.Recycle(v.Values)
		return made, way[there-1].To, way[there:], err
	}
	return v, round, nil, err
}

// keepSets keeps sets that were read back for the machine to have them applied.
func (n *Node) keepSets(sets []SavedSet) (list []client.Set) {
	n.kept = sets
	for _, s := range sets {
		_, followed := n.updateOf(s.Payloads)
		list = append(list, client.Set{To: s.To, Step: s.Step, From: s.From, Followed: followed})
	}
	return list
}

// takeKept returns a set that was read back, and lets go of those before it.
func (n *Node) takeKept(to coordinator.Round) (set [][]byte, ok bool) {
	for len(n.kept) > 0 && !ok {
		set, ok, n.kept = n.kept[0].Payloads, n.kept[0].To == to, n.kept[1:]
	}
	return set, ok
}

// updateOf returns the root of a set that is an update. ok is false if it is of payloads.
func (n *Node) updateOf(set [][]byte) (root wire.Hash, ok bool) {
	if n.follower == nil || len(set) != 1 || n.follower.CheckUpdate(set[0]) != nil {
		return wire.Hash{}, false
	}
	return merkle.BlobRoot(set[0]), true
}
