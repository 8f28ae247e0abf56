package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/node/queue"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// share is a computed share.
type share struct {
	engine.Result
	state  *blobs.Version
	failed error
}

// stateRoot returns the hash of the state after the share.
func (s share) stateRoot() wire.Hash {
	if s.state == nil {
		return wire.Hash{}
	}
	return s.state.Root
}

// compute computes a share, with the next state in memory of its own. It runs off the loop.
//
// If settle is not zero, compute first takes out of the state what the slice that it draws has
// sent.
func (n *Node) compute(ctx context.Context, in input, spans []batch.Span, step coordinator.Step, settle wire.Hash) (s share) {
	next := n.optim.Buffer()
	params, state, own, failed := n.params.Begin(in.params, next, func() error {
		err := n.optim.Fill(next, in.state)
		if err == nil && n.slicer != nil && in.state != nil && !settle.IsZero() {
			n.slicer.Settle(next, settle)
		}
		return err
	})
	if s.failed = failed; failed == nil {
		s.Result, s.failed = n.cfg.Engine.Step(ctx, params, state, spans, uint32(step))
		n.params.Recycle(own)
	}
	if s.failed != nil {
		n.optim.Recycle(next)
		return s
	}
	s.state = n.optim.Measured(next)
	return s
}

// Job names a computation, for Cost.
type Job struct {
	Kind      string // "train", "apply", "hash", "eval", "inspect", "init", "save", "trace", "move"
	Sequences uint32 // of a train or trace job
}

// training is what the engine's queue knows the training of a round by.
type training coordinator.Round

// train computes this member's share and reports it to the machine.
func (n *Node) train(a client.Train) {
	v := n.params.Find(a.Params)
	if v == nil {
		n.cfg.Loop.Post(func() { n.step(client.Trained{Round: a.Round, Failed: "the round's parameters are not at hand"}) })
		return
	}
	root := n.state.Config().StateHash
	prev := n.optim.Find(a.Prev)
	if prev == nil && n.slicer != nil && a.Prev != root {
		// as it was saved before a crash: what it has not sent yet is worth more than nothing
		prev = n.optim.Current
	}
	if prev != nil {
		root = prev.Root
	}
	in := input{v, prev}
	in.use()
	n.saveBegun(prev)
	var made share
	var payload wire.Hash
	var size uint32
	start := n.cfg.Loop.Now()
	n.engine.Add(&queue.Task{Of: training(a.Round), Cost: n.cfg.Cost(Job{Kind: "train", Sequences: batch.Total(a.Spans)}),
		Work: func(ctx context.Context) {
			if made = n.compute(ctx, in, a.Spans, a.Step, a.Settle); made.failed == nil {
				payload, size = n.promise(made.Payload)
			}
		},
		Done: func(cancelled bool) {
			// The commitment names what the share began from, and the machine has it retained with
			// the commitment. Until then it is in use: otherwise any prune in between would drop
			// it, and this member could not serve its own result.
			defer n.release(in)
			if cancelled || made.failed != nil {
				n.optim.Forget(made.state)
				if made.failed != nil && !errors.Is(made.failed, context.Canceled) {
					n.unable(a.Round, made.failed.Error())
					n.step(client.Trained{Round: a.Round, Failed: made.failed.Error()})
				}
				return
			}
			n.optim.Current = n.optim.Keep(made.state)
			n.put(a.Round, made.Payload)
			n.observe(event.Trained{Epoch: a.Epoch, Round: a.Round, Step: a.Step, Loss: made.Loss, Tokens: made.Tokens,
				LR: made.LR, GradNorm: made.GradNorm, Seconds: n.cfg.Loop.Now().Sub(start).Seconds(), Bytes: uint64(size)})
			n.step(client.Trained{Round: a.Round, Payload: payload, PayloadBytes: size,
				Prev: root, State: n.optim.Current.Root, Gradient: made.Gradient, Loss: gossip.Milli(made.Loss)})
		}})
}

// fetchPayload fetches a payload unless it is here already, checks it and reports.
func (n *Node) fetchPayload(a client.FetchPayload) {
	switch {
	case a.Slices > 0:
		n.fetchRange(a)
	case n.blobs.KeepPayload(a.Round, n.revealKey(a.Payload, a.Seed)):
		n.hear(client.PayloadFetched{Round: a.Round, Member: a.Member, ID: a.ID, OK: true})
	default:
		p, ok := payloads.Get().(*coming)
		if !ok {
			p = &coming{}
			p.arrives, p.comes, p.checks, p.keeps = p.arrive, p.come, p.check, p.keep
		}
		p.FetchPayload, p.node, p.start = a, n, n.cfg.Loop.Now()
		if !a.Bulk.IsZero() {
			n.bulk = append(n.bulk, p)
			return
		}
		n.exchange.fetchPayload(n.within(fetchFor+time.Duration(a.PayloadBytes)*fetchForByte), p)
	}
}

// fetchBulk asks for payloads that are to be fetched together. The machine asks their authors for
// those that do not come.
func (n *Node) fetchBulk() {
	for list := n.bulk; len(list) > 0; {
		q, k, bytes := wire.AppendU8(nil, questionBulk), 0, 0
		for ; k < min(len(list), blobs.BulkMax) && list[k].Bulk == list[0].Bulk && bytes < blobs.BulkBytes; k++ {
			q, bytes = wire.AppendHash(q, list[k].Payload), bytes+int(list[k].PayloadBytes)
		}
		part := list[:k]
		n.exchange.(server).ask(n.within(bulkFor), part[0].Bulk, q, func(answer []byte, err error) {
			r := wire.NewReader(answer)
			for _, p := range part {
				if p.data, p.err = blobs.ParseBulk(&r, p.Payload, p.PayloadBytes), err; p.data == nil {
					p.err = p2p.ErrMissing
				}
				p.come()
			}
		})
		list = list[k:]
	}
	n.bulk = nil
}

// bulkFor is how long an answer with many payloads may take: others can be asked for them.
const bulkFor = 2 * time.Second

// coming is a payload on its way. A witness of a large run has thousands at once.
type coming struct {
	client.FetchPayload
	node  *Node
	start time.Time
	data  []byte
	err   error
	// arrive, come, check and keep, which are made once for many payloads
	arrives              func([]byte, error)
	comes, checks, keeps func()
}

// payloads has the memory of payloads that have come.
var payloads sync.Pool

// report ends it.
func (p *coming) report(ok, refused bool) {
	p.node.hear(client.PayloadFetched{Round: p.Round, Member: p.Member, ID: p.ID, OK: ok, Refused: refused})
	p.From, p.node, p.data, p.err = nil, nil, nil, nil
	payloads.Put(p)
}

// arrive takes it from any goroutine, and come on the loop.
func (p *coming) arrive(data []byte, err error) {
	p.data, p.err = data, err
	p.node.cfg.Loop.Post(p.comes)
}

func (p *coming) come() {
	n := p.node
	n.parts.Ended(p.err, n.cfg.Loop.Now())
	if p.err != nil || n.ctx.Err() != nil {
		p.report(false, false)
		return
	}
	n.observe(event.Fetched{Round: p.Round, Member: p.Member, Bytes: uint64(len(p.data)), Seconds: n.cfg.Loop.Now().Sub(p.start).Seconds()})
	if !p.Bulk.IsZero() { // it is small, and there are many
		p.check()
		p.keep()
		return
	}
	n.cfg.Loop.Work(0, p.checks, p.keeps)
}

func (p *coming) check() { p.err = p.node.cfg.Engine.Check(p.data) }

func (p *coming) keep() {
	n := p.node
	if p.err != nil {
		n.note("payload of member " + n.memberName(p.Member) + ": " + p.err.Error())
		p.report(false, true)
		return
	}
	if name := n.revealKey(p.Payload, p.Seed); name == p.Payload {
		n.blobs.PutFetched(p.Round, name, p.data)
	} else {
		n.blobs.PutReveal(p.Round, name, p.data)
	}
	p.report(true, false)
}

// One attempt to fetch a payload takes at most fetchFor, and fetchForByte more for each byte: 1
// MB/s is what a member with 16 fetches under way gets of 128 Mb/s. The next one continues it.
const (
	fetchFor     = 20 * time.Second
	fetchForByte = time.Microsecond
)

func (n *Node) memberName(i coordinator.Member) string {
	if i >= n.state.Count() {
		return fmt.Sprint(i)
	}
	k := n.state.Key(i)
	return fmt.Sprintf("%d (%x)", i, k[:4])
}

// payloads returns payloads, or their slices that a seed draws. ok is false if one is not here.
func (n *Node) payloads(roots []wire.Hash, seed wire.Hash) (list [][]byte, ok bool) {
	list = make([][]byte, len(roots))
	for i, root := range roots {
		if list[i], ok = n.blobs.Payload(n.revealKey(root, seed)); !ok {
			return nil, false
		}
	}
	return list, true
}

// apply makes the next round's parameters.
func (n *Node) apply(a client.Apply) {
	from := n.params.Current
	roots := a.Payloads
	if !a.Update.IsZero() {
		roots = []wire.Hash{a.Update}
	}
	payloads, ok := n.payloads(roots, a.Seed)
	if a.Kept {
		payloads, ok = n.takeKept(a.To)
	} else {
		n.kept = nil // others came in their place
	}
	if !ok || from == nil {
		n.cfg.Loop.Post(func() { n.step(client.Applied{To: a.To}) })
		return
	}
	from.Uses++
	v := &blobs.Version{}
	results := len(a.Payloads)
	if r, ok := n.state.At(a.Of); ok && !a.Update.IsZero() {
		results = int(r.AcceptedCount())
	}
	var own *blobs.Blob
	var failed error
	n.engine.Add(&queue.Task{Cost: n.cfg.Cost(Job{Kind: "apply"}),
		Work: func(context.Context) {
			v.Values = n.params.Buffer()
			n.cfg.Engine.Copy(v.Values, from.Values)
			if a.Serve {
				var update []byte
				if update, failed = n.follower.Update(nil, payloads); failed != nil {
					return
				}
				own, payloads = blobs.NewUpdate(a.Of, update), [][]byte{update}
			}
			if failed = n.applySet(v.Values, payloads, a.Step); failed == nil {
				v.Leaves = n.cfg.Engine.Leaves(v.Values)
				v.Root = merkle.Root(v.Leaves)
			}
		},
		Done: func(bool) {
			from.Uses--
			if failed == nil && !a.Kept {
				n.saveSet(a, from.Root, v.Root, payloads)
			}
			if failed != nil {
				n.params.Recycle(v.Values)
				n.note("applying the accepted set: " + failed.Error())
				n.step(client.Applied{To: a.To})
				return
			}
			update := a.Update
			if a.Serve {
				update = n.blobs.PutMade(own)
			}
			if a.Kept {
				update, _ = n.updateOf(payloads)
			}
			v = n.setCurrent(v)
			if x, ok := n.exchange.(publisher); ok {
				x.applied(a, v)
			}
			n.observe(event.Applied{Round: a.To, Step: a.Step, Results: results, Params: v.Root})
			n.step(client.Applied{To: a.To, Params: v.Root, Update: update, OK: true})
			n.saveSometimes()
			n.evaluate(a.Step)
			n.inspect(a.Step)
		}})
}

// applySet applies an accepted set: its payloads, or its update alone.
func (n *Node) applySet(params engine.Vector, set [][]byte, step coordinator.Step) error {
	if n.follower != nil && len(set) == 1 && n.follower.CheckUpdate(set[0]) == nil {
		return n.follower.Follow(params, set[0], uint32(step))
	}
	return n.cfg.Engine.Apply(params, set, uint32(step))
}

// evaluate measures the held-out loss after every few steps, behind whatever the engine is doing.
func (n *Node) evaluate(step coordinator.Step) {
	if n.cfg.EvalRounds == 0 || uint32(step)%n.cfg.EvalRounds != 0 {
		return
	}
	v := n.params.Current
	v.Uses++
	var loss float32
	var failed error
	n.engine.Add(&queue.Task{Cost: n.cfg.Cost(Job{Kind: "eval"}),
		Work: func(ctx context.Context) { loss, failed = n.cfg.Engine.HeldOut(ctx, v.Values) },
		Done: func(cancelled bool) {
			v.Uses--
			switch {
			case cancelled:
			case failed != nil:
				n.note("held-out loss: " + failed.Error())
			default:
				n.observe(event.Evaluated{Step: step, HeldOut: loss, Params: v.Root})
			}
		}})
}

// inspect has the parameters examined every InspectRounds steps, when the engine has nothing else
// to do.
func (n *Node) inspect(step coordinator.Step) {
	if n.cfg.Inspect == nil || n.cfg.InspectRounds == 0 || uint32(step)%n.cfg.InspectRounds != 0 {
		return
	}
	v := n.params.Current
	v.Uses++
	var seen []event.Event
	n.engine.Add(&queue.Task{Later: true, Cost: n.cfg.Cost(Job{Kind: "inspect"}),
		Work: func(ctx context.Context) { seen = n.cfg.Inspect(ctx, step, v.Root, engine.Values(v.Values)) },
		Done: func(bool) {
			v.Uses--
			for _, ev := range seen {
				n.observe(ev)
			}
		}})
}

// checkpoint writes the epoch's checkpoint if this member was designated or keeps one anyway.
func (n *Node) checkpoint(a client.Save) {
	v := n.params.Find(a.Params)
	if n.cfg.Checkpoint == nil || v == nil || !a.Elected && !n.cfg.CheckpointAlways {
		return
	}
	step := n.state.Step()
	c := Checkpoint{Epoch: a.Epoch, Round: a.Round, Step: step, Hash: a.Params,
		Known: a.Known, Sequence: n.state.DataIndex(), Endings: a.Endings}
	var own *blobs.Version
	if a.Own != n.state.Config().StateHash {
		own = n.optim.Find(a.Own)
	}
	in := input{v, own}
	in.use()
	var manifest wire.Hash
	var failed error
	n.cfg.Loop.Work(n.cfg.Cost(Job{Kind: "save"}), func() {
		var unread error
		c.Params, failed = n.params.Floats(v)
		if c.Own, unread = n.settled(own, a); failed == nil && unread == nil {
			manifest, failed = n.cfg.Checkpoint(c)
		}
		failed = errors.Join(failed, unread)
	}, func() {
		if failed != nil {
			n.note("checkpoint: " + failed.Error())
		} else {
			n.observe(event.Checkpoint{Epoch: a.Epoch, Step: step, Manifest: manifest, Params: a.Params})
		}
		x, uploads := n.exchange.(publisher)
		if !a.Elected || failed != nil || !uploads {
			n.release(in)
			n.step(client.Saved{Epoch: a.Epoch, Manifest: manifest, OK: failed == nil})
			return
		}
		// The run relies on this member for newcomers as well, who get the model from its bucket.
		within := time.Duration(n.state.Config().CooldownMs) * time.Millisecond
		x.putModel(a.Round, c.Params, within, func(err error) {
			n.release(in)
			n.step(client.Saved{Epoch: a.Epoch, Manifest: manifest, OK: err == nil})
		})
	})
}

// saver writes the state file.
type saver struct {
	at      time.Time
	running bool
	again   []func() // wait for a save that begins after the running one
	sets    uint64   // bytes of the sets applied since the last save
}

// saveEvery is how often the state file is written while training. A crash loses at most that much
// of the optimizer's memory; the model comes from the peers.
const saveEvery = 5 * time.Second

func (n *Node) saveSometimes() {
	if n.cfg.Loop.Now().Sub(n.save.at) >= saveEvery && !n.save.running {
		n.saveNow(func() {})
	}
}

// saveNow writes the state file and then calls done.
func (n *Node) saveNow(done func()) {
	round, root, ok := n.machine.Round()
	v := n.params.Find(root)
	if n.cfg.Store == nil || !ok || v == nil || n.optim.Current == nil {
		done()
		return
	}
	if n.save.running {
		n.save.again = append(n.save.again, done)
		return
	}
	// Better than the newest parameters are those the run agreed on last: after an epoch that
	// everybody left it goes on from these, and this member may be the only one that has them.
	if agreed, at := n.state.Params(); n.params.Find(agreed) != nil {
		round, v = at, n.params.Find(agreed)
	}
	n.save.running, n.save.at, n.save.sets = true, n.cfg.Loop.Now(), 0
	in := input{v, n.optim.Current}
	in.use()
	s := Saved{Run: n.cfg.ID, Epoch: n.state.Epoch(), Round: round, Step: n.state.Step(), Params: v.Root, Optimizer: in.state.Root}
	n.disk.FileBoth(v, in.state, func(failed error) {
		n.cfg.Loop.Work(0, func() {
			if failed == nil {
				failed = n.cfg.Store.Save(s)
			}
			if sets, ok := n.cfg.Store.(SetStore); ok && failed == nil {
				failed = sets.DropSets(s.Round)
			}
		}, func() { n.wrote(s, in, failed, done) })
	})
}

// wrote ends a save.
func (n *Node) wrote(s Saved, in input, failed error, done func()) {
	if failed == nil {
		n.disk.Pin(s.Params, s.Optimizer)
	} else {
		n.note("state file: " + failed.Error())
	}
	n.save.running = false
	n.release(in)
	done()
	again := n.save.again
	n.save.again = nil
	if len(again) > 0 {
		n.saveNow(func() {
			for _, f := range again {
				f()
			}
		})
	}
}
