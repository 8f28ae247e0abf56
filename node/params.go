package node

import (
	"context"
	"errors"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/node/queue"
	"github.com/entrain-network/entrain/wire"
)

// setCurrent makes v the current parameters, drops versions no longer needed, and returns what it
// kept: v, or the same parameters, which it had.
func (n *Node) setCurrent(v *blobs.Version) *blobs.Version {
	n.params.Current, n.lack = n.params.Keep(v), lack{}
	n.prune()
	return n.params.Current
}

// prune drops the parameters and optimizer states that are no longer needed.
//
// What stays is the current parameters and the ones before, the agreed ones, the optimizer state to
// continue from, and what the machine retains (client.Retain): the parameters and this member's
// states of the last Overlap+2 rounds, whose checks are not drawn yet, and those of the checks and
// disputes this member is in. Each blob is of the size of the model. There are at most
// 2*(Overlap+3) of them, and two more for each check or dispute, usually none or one at a time.
//
// Large ones (blobs.FileFrom) are in files, as soon as these are written. Memory then has the
// current parameters, the state to continue from, the gradient, and a buffer for what a job makes,
// which has old parameters until it has the gradient: four blobs.
func (n *Node) prune() {
	agreed, _ := n.state.Params()
	n.params.Prune(func(age int, v *blobs.Version) bool { return age <= 1 || v.Root == agreed || n.held[v.Root] })
	n.optim.Prune(func(_ int, v *blobs.Version) bool { return n.held[v.Root] })
	n.disk.Sweep(func(root wire.Hash) bool { return n.params.Find(root) != nil || n.optim.Find(root) != nil })
}

// retain replaces what the machine has the node retain.
func (n *Node) retain(a client.Retain) {
	n.held = make(map[wire.Hash]bool, len(a.Blobs))
	for _, root := range a.Blobs {
		n.held[root] = true
	}
	n.commitments.Retain(a.Shares, a.Assignments)
	n.closeArguments(a.Mine)
	n.dropCases(a.Mine)
	n.prune()
}

// load finds parameters to start from: the saved ones, else the run's initial ones if the run is at
// its beginning, else none.
func (n *Node) load() {
	var saved Saved
	var found bool
	var failed, lost error // lost: of the cases, the sets, or the sealed update
	loaded := client.Loaded{}
	agreed, agreedRound := n.state.Params()
	var v, optimizer *blobs.Version
	var state []float32
	var in input
	var cases []recalledCase
	var own []ownResult
	var kept []SavedSet
	var resumed string
	fresh := n.state.Config().StateHash
	n.engine.Add(&queue.Task{Cost: n.cfg.Cost(Job{Kind: "init"}),
		Work: func(context.Context) {
			if n.cfg.Store != nil {
				if saved, found, failed = n.cfg.Store.Load(); found {
					in, failed = n.recallInput(saved.Params, saved.Optimizer, true)
					v, optimizer, found = in.params, in.state, failed == nil && saved.Run == n.cfg.ID
				}
				cases, lost = n.loadCases()
				var unread error
				own, loaded.InDoubt, unread = n.loadOwn()
				lost = errors.Join(lost, unread)
			}
			if !found {
				state, resumed = n.resume()
				optimizer = n.optim.Measured(n.cfg.Engine.Load(state))
			}
			if n.begins(optimizer.Root, fresh) {
				loaded.State = optimizer.Root
			}
			switch {
			case found:
				var unread error
				v, saved.Round, kept, unread = n.redo(v, saved.Round, agreed)
				lost = errors.Join(lost, unread)
			case agreedRound == 0:
				if first := n.cfg.Initial(); first != nil {
					v = n.params.Measured(n.cfg.Engine.Load(first))
				}
			}
		},
		Done: func(bool) {
			n.noteFaults(resumed, failed, lost)
			n.disk.Pin(saved.Params, saved.Optimizer)
			loaded.Cases = n.takeBack(cases)
			n.optim.Current = n.optim.Keep(optimizer)
			loaded.Committed = n.takeBackOwn(own, optimizer.Root)
			if n.doubtful(last(loaded.Committed).Commitment) {
				loaded.InDoubt = true
			}
			if n.instance.doubt = loaded.InDoubt; loaded.InDoubt && n.state.Phase() != coordinator.Finished {
				n.note("state directory: what this key signed last is not in it, or cannot be read; leaving out the round that is open")
			}
			if v == nil {
				n.step(loaded)
				return
			}
			v = n.setCurrent(v)
			n.tellLoaded(saved.Round, v.Root, found)
			loaded.Known, loaded.Round, loaded.Params = true, saved.Round, v.Root
			loaded.Sets = n.keepSets(kept)
			n.step(loaded)
		}})
}

// recallInput reads parameters and, if its root is not zero, a state from files, off the loop.
func (n *Node) recallInput(params, state wire.Hash, inMemory bool) (in input, err error) {
	if in.params, err = n.params.Recall(n.cfg.Store, params, inMemory); err == nil && !state.IsZero() {
		in.state, err = n.optim.Recall(n.cfg.Store, state, inMemory)
	}
	return in, err
}

// tellLoaded tells which parameters the node starts from: those of its state directory, or the
// run's initial ones.
func (n *Node) tellLoaded(round coordinator.Round, params wire.Hash, saved bool) {
	text := initialParameters
	if saved {
		text = "parameters from the state directory"
	}
	n.observe(event.Loaded{Round: round, Params: params, Source: text})
	if saved {
		n.cfg.Loop.After(lackFirst, func() { n.tellBehind(round) })
	}
}

// noteFaults notes what was wrong with the state that the node started from.
func (n *Node) noteFaults(resumed string, failed, lost error) {
	if resumed != "" {
		n.note(resumed)
	}
	if failed != nil {
		n.note("state directory: " + failed.Error() + "; starting from the peers' model instead")
	}
	if lost != nil {
		n.note("state directory: " + lost.Error())
	}
}

// last returns the newest of a member's signed commitments, zero if there is none.
func last(list []dispute.Signed) (s dispute.Signed) {
	if len(list) > 0 {
		s = list[len(list)-1]
	}
	return s
}

// initialParameters says to people where parameters came from.
const initialParameters = "the run's initial parameters"

// heal gets the agreed parameters: from an older version of our own, from Config.Initial, from a
// checkpoint, or from peers.
func (n *Node) heal(a client.Heal) {
	if v := n.params.Find(a.Params); v != nil && v.Values != nil {
		n.setCurrent(v)
		n.cfg.Loop.Post(func() { n.step(client.Healed{Round: a.Round, Params: a.Params, OK: true}) })
		return
	} else if v != nil && !n.recalled[a.Params] {
		n.recall(a, "the state directory", func() []float32 { return n.params.Filed(a.Params) })
		return
	}
	if a.Params == n.state.Config().ModelHash && !n.notInitial {
		n.adopt(a, fetched{make: n.cfg.Initial, source: initialParameters})
		return
	}
	if n.cfg.Recall != nil && !n.recalled[a.Params] {
		n.recall(a, "a checkpoint on this machine", func() []float32 { return n.cfg.Recall(a.Params) })
		return
	}
	if !n.connections.known {
		// Just started: nobody can be reached yet. The machine asks again.
		n.cfg.Loop.Post(func() { n.step(client.Healed{Round: a.Round, Params: a.Params}) })
		return
	}
	have := n.params.Current
	if have != nil {
		have.Uses++
	}
	progress := func(done, total uint64) {
		n.cfg.Loop.Post(func() { n.observe(event.Healing{Bytes: done, Total: total, Round: a.Round}) })
	}
	n.exchange.fetchModel(n.ctx, a, have, progress, func(model fetched, err error) {
		if have != nil {
			have.Uses--
		}
		if err != nil {
			n.lacks(a, err)
			n.step(client.Healed{Round: a.Round, Params: a.Params})
			return
		}
		n.adopt(a, model)
	})
}

// recall looks for the parameters on this machine, once for each hash.
func (n *Node) recall(a client.Heal, source string, from func() []float32) {
	if n.recalled == nil {
		n.recalled = map[wire.Hash]bool{}
	}
	n.recalled[a.Params] = true
	var found []float32
	n.cfg.Loop.Work(n.cfg.Cost(Job{Kind: "init"}), func() { found = from() }, func() {
		if len(found) != n.cfg.Engine.ParamsLen() {
			n.step(client.Healed{Round: a.Round, Params: a.Params})
			return
		}
		n.adopt(a, fetched{make: func() []float32 { return found }, source: source})
	})
}

// adopt makes parameters current if they have the agreed hash.
func (n *Node) adopt(a client.Heal, model fetched) {
	var v *blobs.Version
	source := model.source
	n.engine.Add(&queue.Task{Cost: n.cfg.Cost(Job{Kind: "hash"}),
		Work: func(context.Context) {
			if values := model.make(); len(values) == n.cfg.Engine.ParamsLen() {
				v = n.params.Measured(n.cfg.Engine.Load(values))
			}
		},
		Done: func(bool) {
			if v == nil || v.Root != a.Params {
				n.notInitial = n.notInitial || source == initialParameters
				if v != nil {
					n.note("healing: " + source + " does not have the agreed hash " + a.Params.String())
				}
				n.step(client.Healed{Round: a.Round, Params: a.Params})
				return
			}
			v = n.setCurrent(v)
			n.observe(event.Healed{Round: a.Round, Params: v.Root, Bytes: uint64(v.Values.Len()) * 4, Source: source})
			n.step(client.Healed{Round: a.Round, Params: a.Params, OK: true})
			if model.safe != nil {
				n.saveNow(func() { n.cfg.Loop.Work(0, model.safe, func() {}) })
			}
		}})
}
