package node

import (
	"cmp"
	"slices"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
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
	if _, uploads := n.exchange.(publisher); !ok || uploads { // buckets outlive a power cut
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
// and returns these and their round. It is called off the loop.
func (n *Node) redo(v *version, round coordinator.Round, agreed wire.Hash) (*version, coordinator.Round, error) {
	store, ok := n.cfg.Store.(SetStore)
	if !ok || v.root == agreed {
		return v, round, nil
	}
	sets, err := store.LoadSets()
	slices.SortFunc(sets, func(a, b SavedSet) int { return cmp.Compare(a.To, b.To) })
	var way []SavedSet
	at := v.root
	for _, s := range sets {
		if s.Run == n.cfg.ID && s.From == at && at != agreed {
			way, at = append(way, s), s.Params
		}
	}
	if at != agreed || len(way) == 0 {
		return v, round, err
	}
	values := n.cfg.Engine.Load(slices.Clone(engine.Values(v.values)))
	for _, s := range way {
		if err := n.applySet(values, s.Payloads, s.Step); err != nil {
			return v, round, err
		}
	}
	if made := n.measured(values); made.root == agreed {
		return made, way[len(way)-1].To, err
	}
	return v, round, err
}
