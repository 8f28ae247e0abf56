package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// In a run of buckets a member puts into its own bucket, under names that follow from what the
// ledger shows (see package bucket):
//
//	commitment  of window r, in r: signed; the ledger gets it too, and keeps its ID
//	reveal      of window r, in r+1, whose seed draws what is revealed
//	state       of window r, in r+2: the values on r's slice once r's accepted set was applied; a
//	            member that missed windows patches what it holds, slice by slice, and compares the
//	            hash with the agreed one
//	lack        of window r, in r+1: whose results this member could not get
//	copy        of window r, in r+1: others' results that some lack, if this member is a witness
//	index, part the parameters that the run agreed on at the end of an epoch, if this member makes
//	            the checkpoint; for newcomers
//
// Windows long over are removed, but not what leads from the last whole model to the newest
// parameters.

// Bucket is how a member of a run of buckets exchanges with the others.
type Bucket struct {
	Exchange *bucket.Exchange
	// Registered is where the others read, credentials included, as the ledger announces it:
	// bucket.Location.Registered.
	Registered string
}

const (
	// putFor bounds writing an object. The machine has it written again while it is of use.
	putFor = 30 * time.Second
	// lookFor bounds one attempt to get an object, with fetchForByte for each byte of a reveal.
	lookFor = 10 * time.Second
	// modelFor bounds fetching a model.
	modelFor = 30 * time.Minute
	// windowsKept is for how many windows commitments and reveals are kept at least, because
	// validators may lag.
	windowsKept = 16
	// tidyEvery is how many windows lie between two clean-ups.
	tidyEvery = 8
)

// buckets is the exchange of members that write to buckets.
type buckets struct {
	node       *Node
	x          *bucket.Exchange
	registered string
	where      map[key.Public]bucket.Location
	submitting map[wire.Hash]bool // commitments on their way to the ledger
	putting    map[wire.Hash]bool // commitments being written, or written
	asking     map[wire.Hash]bool // commitments being looked for
	// This member's commitments of the last two windows.
	newest, before dispute.Signed
	healing        healing
	tidied         coordinator.Round // window of the last clean-up
	full           fullBucket
	models         []coordinator.Round // windows of the newest whole models
	model          wire.Hash
	sent           uint64            // bytes written, as reported last
	stops          map[uint64]func() // of operations under way
	started        uint64
}

func newBuckets(n *Node, b *Bucket) *buckets {
	return &buckets{node: n, x: b.Exchange, registered: b.Registered, where: map[key.Public]bucket.Location{},
		submitting: map[wire.Hash]bool{}, putting: map[wire.Hash]bool{}, asking: map[wire.Hash]bool{}, stops: map[uint64]func(){}}
}

func (b *buckets) run() wire.Hash { return b.node.cfg.ID }

// publish sends this member's commitment to the ledger and writes it to the bucket, each until it
// has succeeded.
func (b *buckets) publish(_ coordinator.Round, a *gossip.Authored, _ []key.Public) {
	n, signed, id := b.node, a.Signed, a.ID
	if !b.submitting[id] {
		b.submitting[id] = true
		n.submitThen(coordinator.Commit{Signed: signed}, func(error) { delete(b.submitting, id) })
	}
	b.write(signed)
}

// write writes this member's commitment to the bucket unless that is done or under way.
func (b *buckets) write(signed dispute.Signed) {
	id := signed.Commitment.ID()
	if b.putting[id] {
		return
	}
	b.putting[id] = true
	if signed.Commitment.Round > b.newest.Commitment.Round {
		b.newest, b.before = signed, b.newest
	}
	b.put("writing a commitment", signed.Commitment.Round, bucket.KindCommitment, id, signed.Append(nil), func(err error) {
		if err != nil {
			delete(b.putting, id)
		}
	})
}

// askCommitments looks for the commitments whose IDs the ledger has.
func (b *buckets) askCommitments(a client.AskCommitments) {
	r, ok := b.node.state.At(a.Round)
	if !ok {
		return
	}
	for _, i := range a.Of {
		if i >= b.node.state.Count() {
			continue
		}
		author := b.node.state.Key(i)
		id, committed := r.Committed(i)
		at, known := b.where[author]
		if !committed || !known || b.asking[id] {
			continue
		}
		b.asking[id] = true
		name := bucket.Name{Run: b.run(), Window: a.Round, Kind: bucket.KindCommitment, Member: author, Content: id}
		b.get(bucket.Want{Location: at, Name: name, Max: dispute.SignedBytes}, func(body []byte, err error) {
			delete(b.asking, id)
			if err != nil {
				b.complain("commitment", i, err)
				return
			}
			if signed, err := dispute.ParseSigned(body); err == nil {
				b.node.received(gossip.NewAuthored(author, signed))
			}
		})
	}
}

// complain notes a fault of a bucket, but not that an object is not there yet.
func (b *buckets) complain(what string, member coordinator.Member, err error) {
	if !errors.Is(err, bucket.ErrMissing) {
		b.node.note(fmt.Sprintf("%s of member %s: %v", what, b.node.memberName(member), bucket.Advise(err)))
	}
}

var errNoBucket = errors.New("the member has announced no bucket")

// fetchPayload gets the reveal of a member. It is refused unless it opens the commitment, for the
// slice that the window's seed draws.
func (b *buckets) fetchPayload(_ context.Context, p *coming) {
	a, author := p.FetchPayload, b.node.state.Key(p.Member)
	at, ok := b.where[author]
	if !ok {
		p.arrive(nil, errNoBucket)
		return
	}
	name := bucket.Name{Run: b.run(), Window: a.Round, Kind: bucket.KindReveal, Member: author, Content: a.Payload}
	w := bucket.Want{Location: at, Name: name, Max: int(a.PayloadBytes), Check: func(body []byte) error { return b.node.opens(body, a.Payload, a.Seed) }}
	b.getWithin(w, lookFor+time.Duration(a.PayloadBytes)*fetchForByte, func(body []byte, err error) {
		if err != nil {
			b.complain("reveal", a.Member, err)
		}
		p.data, p.err = body, err
		p.come()
	})
}

// reveal writes the slice of this member's result. It also writes the commitment if that has not
// succeeded yet: without it, no member looks for the reveal.
func (b *buckets) reveal(a client.Reveal, body []byte, done func(error)) {
	for _, signed := range []dispute.Signed{b.newest, b.before} {
		if signed.Commitment.Payload == a.Payload && signed.Commitment.Round == a.Round {
			b.write(signed)
		}
	}
	b.show(a, body, func(err error) {
		b.revealed(a, body, err)
		done(err)
	})
}

// applied writes the values on the slice of the window that was applied.
func (b *buckets) applied(a client.Apply, v *blobs.Version) {
	n := b.node
	self, ok := n.place(n.state)
	if n.slicer == nil || a.Seed.IsZero() || !ok || (coordinator.Round(self)+a.Of)%coordinator.Round(n.stride()) != 0 {
		return
	}
	v.Uses++
	var body []byte
	n.cfg.Loop.Work(0, func() { body = n.slicer.StateSlice(v.Values, a.Seed) }, func() {
		v.Uses--
		b.put("writing a slice of the agreed parameters", a.Of, bucket.KindState, v.Root, body, func(error) {})
	})
}

// stride is the number of members of whom one writes the outcome of a window, another one each
// time: in a large run not all are needed.
func (n *Node) stride() coordinator.Member { return max(1, n.state.Count()/writersWanted) }

// writersWanted is how many members write the slice of the agreed parameters of a window, or all if
// there are fewer.
const writersWanted = 8

// putModel writes the parameters that the run agreed on.
func (b *buckets) putModel(round coordinator.Round, values []float32, within time.Duration, done func(error)) {
	b.track(func(ended func()) func() {
		return b.x.PutBlob(b.run(), round, tensor.Bytes(values), within, func(_ wire.Hash, err error) {
			ended()
			b.wrote("writing the model", err)
			done(err)
		})
	})
}

// owes allows for the rest of a window and half of the next.
func (b *buckets) owes() (text string, most time.Duration) {
	c := b.node.state.Config()
	return "leaving, once this member has revealed its last result: when the window is over",
		2 * time.Duration(c.RoundTrainMs+c.RoundWitnessMs) * time.Millisecond
}

func (b *buckets) addrs() []string { return []string{b.registered} }

// connect takes where the others' buckets are.
func (b *buckets) connect(all []host.Peer) (linked int) {
	clear(b.where)
	if at, err := bucket.ParseLocation(b.registered); err == nil {
		b.where[b.node.self] = at
	}
	for _, o := range all {
		if o.Key == b.node.self {
			continue
		}
		for _, addr := range o.Addrs {
			if at, err := bucket.ParseLocation(addr); err == nil {
				b.where[o.Key] = at
				linked++
				break
			}
		}
	}
	return linked
}

// close gives up what is under way.
func (b *buckets) close() error {
	for _, stop := range b.stops {
		stop()
	}
	clear(b.stops)
	return nil
}

// track remembers an operation until it has ended, so that close can stop it.
func (b *buckets) track(start func(ended func()) (stop func())) {
	b.started++
	id := b.started
	b.stops[id] = start(func() { delete(b.stops, id) })
}

// put writes an object of this member; what says what that is for.
func (b *buckets) put(what string, round coordinator.Round, kind bucket.Kind, content wire.Hash, body []byte, done func(error)) {
	b.track(func(ended func()) func() {
		return b.x.Put(b.x.Name(b.run(), round, kind, content), body, putFor, func(err error) {
			ended()
			b.wrote(what, err)
			done(err)
		})
	})
}

// get reads an object of a member.
func (b *buckets) get(w bucket.Want, done func([]byte, error)) { b.getWithin(w, lookFor, done) }

func (b *buckets) getWithin(w bucket.Want, within time.Duration, done func([]byte, error)) {
	b.track(func(ended func()) func() {
		return b.x.Get(w, within, func(body []byte, err error) {
			ended()
			done(body, err)
		})
	})
}

// entered notes that a window has opened. It forgets windows long over, and now and then deletes
// what was written in them.
func (b *buckets) entered(round coordinator.Round) {
	if sent := b.x.Writer().Traffic.Bytes(); sent > b.sent {
		b.node.observe(event.Traffic{Round: round, Bytes: sent - b.sent})
		b.sent = sent
	}
	clear(b.asking)
	if round%tidyEvery == 0 {
		clear(b.putting)
	}
	n := b.node
	if saved, ok := n.state.LastCheckpoint(); ok && saved.Params != b.model {
		_, at := n.state.Params() // of the epoch's end, or later
		b.model, b.models = saved.Params, append(b.models, at)
		b.models = b.models[max(0, len(b.models)-2):]
	}
	if round >= b.tidied+tidyEvery {
		b.tidy(max(windowsKept, coordinator.Round(3*n.state.Config().ScoreWindows)))
	}
}

// tidy removes this member's objects of all windows but the newest, and those that lead from the
// last whole models to the newest parameters.
func (b *buckets) tidy(keep coordinator.Round) {
	round := b.node.state.Round()
	if round <= keep {
		return
	}
	b.tidied = round
	base := coordinator.Round(0)
	if len(b.models) == 2 {
		base = b.models[0]
	}
	kept := func(o bucket.Name) bool {
		switch o.Kind {
		case bucket.KindState, bucket.KindIndex, bucket.KindPart:
			return o.Window+baseSlack >= base
		}
		return false
	}
	b.remove(round-keep, kept, func() {})
}

// remove removes this member's objects of windows before one, except those that are kept.
func (b *buckets) remove(before coordinator.Round, kept func(bucket.Name) bool, done func()) {
	b.track(func(ended func()) func() {
		return b.x.DeleteBefore(b.run(), before, kept, putFor, func(deleted int, err error) {
			ended()
			if err != nil {
				b.node.note("removing old windows from the bucket: " + err.Error())
			} else if deleted > 0 {
				b.node.observe(event.Tidied{Round: before, Objects: uint64(deleted)})
			}
			done()
		})
	})
}

// retire removes what nobody needs of a run that has finished, for as long as done waits. If the
// run has a checkpoint of its last parameters, that is all but those; others may still fetch them.
func (b *buckets) retire(done func()) {
	s := b.node.state
	saved, ok := s.LastCheckpoint()
	params, at := s.Params()
	if b.node.height == 0 || s.Phase() != coordinator.Finished || !ok || saved.Params != params {
		done()
		return
	}
	b.remove(s.Round()+1, func(o bucket.Name) bool {
		return (o.Kind == bucket.KindIndex || o.Kind == bucket.KindPart) && o.Window+baseSlack >= at
	}, done)
}

// baseSlack is how many windows after a model's own the state may first show its checkpoint.
const baseSlack = 4
