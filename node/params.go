package node

import (
	"context"
	"fmt"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// version is one set of parameters. It is never changed: the next round's are made in another buffer, so that peers can be served,
// a loss measured and a file written from this one meanwhile.
type version struct {
	root   wire.Hash
	leaves []wire.Hash
	params []float32
	uses   int // jobs that read it
}

// versions are the parameters held: the current ones, those before, and the last agreed ones, which peers that heal ask for.
type versions struct {
	current *version
	older   []*version // newest first
	free    [][]float32
}

// find returns the held version with a hash.
func (v *versions) find(root wire.Hash) *version {
	if v.current != nil && v.current.root == root {
		return v.current
	}
	for _, o := range v.older {
		if o.root == root {
			return o
		}
	}
	return nil
}

// buffer returns memory for a version of n float32s, recycled if there is some.
func (v *versions) buffer(n int) []float32 {
	if k := len(v.free); k > 0 {
		b := v.free[k-1]
		v.free = v.free[:k-1]
		return b
	}
	return make([]float32, n)
}

// setCurrent makes v the current parameters and lets go of those nobody will ask for.
func (n *Node) setCurrent(v *version) {
	p := &n.params
	if p.current == v {
		return
	}
	if p.current != nil {
		p.older = append([]*version{p.current}, p.older...)
	}
	kept := p.older[:0]
	agreed, _ := n.state.Params()
	for i, o := range p.older {
		if o == v {
			continue
		}
		if i == 0 || o.root == agreed || o.uses > 0 {
			kept = append(kept, o)
			continue
		}
		if o.root != v.root {
			n.shelf.drop(o.root)
		}
		p.free = append(p.free, o.params)
	}
	p.older = kept
	p.current = v
	n.shelf.putParams(v.root, v.leaves, v.params)
}

// load finds parameters to start from: the saved ones, else the run's initial ones if the run is at its beginning, else none.
func (n *Node) load() {
	var saved Saved
	var found bool
	var failed error
	loaded := client.Loaded{}
	_, agreedRound := n.state.Params()
	v := &version{}
	n.engine.add(&job{kind: "init", cost: n.cfg.Cost(Job{Kind: "init"}),
		work: func(context.Context) {
			if n.cfg.Store != nil {
				saved, found, failed = n.cfg.Store.Load()
				loaded.Committed, loaded.InDoubt = lastCommitment(n.cfg.Store)
			}
			if found && (saved.Run != n.cfg.ID || len(saved.Params) != n.cfg.Engine.ParamsLen() || len(saved.Optimizer) != n.cfg.Engine.StateLen()) {
				found, failed = false, fmt.Errorf("the saved state belongs to another run or model")
			}
			switch {
			case found:
				v.params = saved.Params
			case agreedRound == 0:
				v.params = n.cfg.Initial()
			default:
				return
			}
			v.leaves = n.cfg.Engine.Leaves(v.params)
			v.root = merkle.Root(v.leaves)
		},
		done: func(bool) {
			if failed != nil {
				n.note("state directory: " + failed.Error() + "; starting from the peers' model instead")
			}
			n.optim.init(n, saved.Optimizer)
			if loaded.InDoubt {
				n.note("state directory: the last commitment cannot be read; leaving out the round that is open")
			}
			if v.params == nil {
				n.step(loaded)
				return
			}
			n.setCurrent(v)
			text := "initial parameters from the run's seed"
			if found {
				text = "parameters from the state directory"
			}
			n.observe(Event{Kind: "loaded", Round: saved.Round, Params: v.root.String(), Text: text})
			loaded.Known, loaded.Round, loaded.Params = true, saved.Round, v.root
			n.step(loaded)
		}})
}

// lastCommitment reads the commitment made last; in doubt it says so.
func lastCommitment(s Store) (c coordinator.Commitment, doubt bool) {
	b, err := s.LoadCommitment()
	if err == nil && b == nil {
		return coordinator.Commitment{}, false
	}
	if err != nil {
		return coordinator.Commitment{}, true
	}
	signed, err := coordinator.ParseSigned(b)
	return signed.Commitment, err != nil
}

// heal gets the agreed parameters: from an older version of our own, from the seed, or from peers.
func (n *Node) heal(a client.Heal) {
	if v := n.params.find(a.Params); v != nil {
		n.setCurrent(v)
		n.cfg.Loop.Post(func() { n.step(client.Healed{Round: a.Round, Params: a.Params, OK: true}) })
		return
	}
	if a.Params == n.state.Config().ModelHash {
		n.adopt(a, n.cfg.Initial, "initial parameters from the run's seed")
		return
	}
	if n.cfg.Recall != nil && !n.recalled[a.Params] {
		n.recall(a)
		return
	}
	if !n.peers.known {
		// Just started: nobody can be reached yet. The machine asks again.
		n.cfg.Loop.Post(func() { n.step(client.Healed{Round: a.Round, Params: a.Params}) })
		return
	}
	have := n.params.current
	if have != nil {
		have.uses++
	}
	fetch := p2p.Fetch{
		Ref:  p2p.Ref{Root: a.Params, Size: uint64(n.cfg.Engine.ParamsLen()) * 4},
		From: a.From,
		Have: func(i uint32, leaf wire.Hash) []byte {
			if have == nil || int(i) >= len(have.leaves) || have.leaves[i] != leaf {
				return nil
			}
			return chunkOf(have.params, i)
		},
		Progress: func(done, total uint64) {
			n.cfg.Loop.Post(func() { n.observe(Event{Kind: "healing", Bytes: done, Total: total, Round: a.Round}) })
		},
	}
	n.network.Fetch(n.ctx, fetch, func(data []byte, err error) {
		n.cfg.Loop.Post(func() {
			if have != nil {
				have.uses--
			}
			if err != nil {
				n.note("fetching the model: " + err.Error())
				n.step(client.Healed{Round: a.Round, Params: a.Params})
				return
			}
			n.adopt(a, func() []float32 {
				params := make([]float32, n.cfg.Engine.ParamsLen())
				tensor.SetBytes(params, data)
				return params
			}, "the peers' model, verified")
		})
	})
}

// recall looks for the parameters among the checkpoints on this machine, once for each hash.
func (n *Node) recall(a client.Heal) {
	if n.recalled == nil {
		n.recalled = map[wire.Hash]bool{}
	}
	n.recalled[a.Params] = true
	var found []float32
	n.cfg.Loop.Work(n.cfg.Cost(Job{Kind: "init"}), func() { found = n.cfg.Recall(a.Params) }, func() {
		if len(found) != n.cfg.Engine.ParamsLen() {
			n.step(client.Healed{Round: a.Round, Params: a.Params})
			return
		}
		n.adopt(a, func() []float32 { return found }, "a checkpoint on this machine")
	})
}

// adopt makes parameters current if they have the agreed hash.
func (n *Node) adopt(a client.Heal, get func() []float32, source string) {
	v := &version{}
	n.engine.add(&job{kind: "hash", cost: n.cfg.Cost(Job{Kind: "hash"}),
		work: func(context.Context) {
			v.params = get()
			v.leaves = n.cfg.Engine.Leaves(v.params)
			v.root = merkle.Root(v.leaves)
		},
		done: func(bool) {
			if v.root != a.Params {
				n.note("healing: " + source + " does not have the agreed hash " + a.Params.String())
				n.step(client.Healed{Round: a.Round, Params: a.Params})
				return
			}
			n.setCurrent(v)
			n.observe(Event{Kind: "healed", Round: a.Round, Params: v.root.String(), Bytes: uint64(len(v.params)) * 4, Text: source})
			n.step(client.Healed{Round: a.Round, Params: a.Params, OK: true})
		}})
}
