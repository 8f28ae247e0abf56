package network

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// Kind is a kind of messages between members.
type Kind uint8

// The kinds.
const (
	Published      Kind = iota // commitments given to gossip
	Heard                      // commitments that came by gossip, the first copy of each
	AskCommitments             // questions, in the order of their first bytes
	AskSpans                   // which sequences a member was given
	AskUpdate                  // which update a witness names
	Offer                      // a commitment for a witness
	AskRange                   // a range of a result
	AskHeld                    // what an aggregator holds
	AskSlice                   // which slice an aggregator names
	AskBulk                    // many results
	OtherQuestion              // of no kind above
	BlobQuestion               // for leaf lists and chunks
	Missing                    // of these, those that the peer could not answer
	Payload                    // chunks of results
	Update                     // chunks of updates, and of their slices
	Model                      // chunks of parameters and optimizer states
	kinds
)

var kindNames = [kinds]string{
	"commitments published", "commitments heard",
	"questions for commitments", "questions for spans", "questions for an update's name", "commitments offered to witnesses",
	"questions for ranges of results", "questions what is held", "questions for a slice's name", "questions for many results", "other questions",
	"questions for blobs", "of these without an answer", "chunks of results", "chunks of updates", "chunks of parameters and states",
}

func (k Kind) String() string { return kindNames[k] }

// Count is messages of a kind, and their bytes: a question's with those of its answer.
type Count struct {
	Messages uint64 `json:"n"`
	Answers  uint64 `json:"answers,omitempty"` // of questions
	Bytes    uint64 `json:"bytes"`
}

// Counts are those of all members since the beginning, by kind.
type Counts [kinds]Count

// Sub returns the counts since before.
func (c Counts) Sub(before Counts) Counts {
	for k := range c {
		c[k].Messages -= before[k].Messages
		c[k].Answers -= before[k].Answers
		c[k].Bytes -= before[k].Bytes
	}
	return c
}

// Counter counts at the interface between a node and its network, whatever the network is, and what
// the network says that it sends.
type Counter struct {
	payload, model int // most bytes of a result, and least of parameters
	counts         [kinds]struct{ messages, answers, bytes atomic.Uint64 }

	wireMu sync.Mutex // guards wire
	wire   map[string]Count
}

// sent counts what a network sends, as lp2p.Options.Count.
func (c *Counter) sent(what string, bytes int) {
	c.wireMu.Lock()
	defer c.wireMu.Unlock()
	n := c.wire[what]
	n.Messages++
	n.Bytes += uint64(bytes)
	if c.wire == nil {
		c.wire = map[string]Count{}
	}
	c.wire[what] = n
}

// Wire returns what the network has sent so far.
func (c *Counter) Wire() map[string]Count {
	c.wireMu.Lock()
	defer c.wireMu.Unlock()
	return maps.Clone(c.wire)
}

// Counts returns the counts so far.
func (c *Counter) Counts() (list Counts) {
	for k := range list {
		from := &c.counts[k]
		list[k] = Count{from.messages.Load(), from.answers.Load(), from.bytes.Load()}
	}
	return list
}

func (c *Counter) add(k Kind, bytes int) {
	c.counts[k].messages.Add(1)
	c.counts[k].bytes.Add(uint64(bytes))
}

// Wrap joins a network and counts what passes between it and h. It is a sim.Config.Wrap.
func (c *Counter) Wrap(h p2p.Handler, join func(p2p.Handler) (p2p.Network, error)) (p2p.Network, error) {
	n, err := join(handler{h, c})
	if err != nil {
		return nil, err
	}
	if at, ok := n.(connected); ok {
		return struct {
			counted
			connected
		}{counted{n, c}, at}, nil
	}
	return counted{n, c}, nil
}

// connected is what a node asks of a network of connections beside p2p.Network.
type connected interface {
	Connected() int
	Members(is func(key.Public) bool)
}

type counted struct {
	p2p.Network
	counter *Counter
}

// Publish implements p2p.Network.
func (n counted) Publish(data []byte) error {
	n.counter.add(Published, len(data))
	return n.Network.Publish(data)
}

// Ask implements p2p.Network.
func (n counted) Ask(ctx context.Context, to key.Public, question []byte, done func([]byte, error)) {
	k := OtherQuestion
	if len(question) > 0 && question[0] >= 1 && question[0] <= byte(AskBulk-AskCommitments)+1 {
		k = AskCommitments + Kind(question[0]) - 1
	}
	n.counter.add(k, len(question))
	n.Network.Ask(ctx, to, question, func(answer []byte, err error) {
		if err == nil {
			n.counter.counts[k].answers.Add(1)
			n.counter.counts[k].bytes.Add(uint64(len(answer)))
		}
		done(answer, err)
	})
}

type handler struct {
	p2p.Handler
	counter *Counter
}

// Gossip implements p2p.Handler.
func (h handler) Gossip(from key.Public, data []byte) p2p.Verdict {
	h.counter.add(Heard, len(data))
	return h.Handler.Gossip(from, data)
}

// Leaves implements p2p.Source. It is called once for each question for a blob.
func (h handler) Leaves(root wire.Hash) ([]wire.Hash, bool) {
	leaves, ok := h.Handler.Leaves(root)
	h.counter.add(BlobQuestion, p2p.QueryBytes)
	if !ok {
		h.counter.add(Missing, 0)
	}
	return leaves, ok
}

// Chunk implements p2p.Source.
func (h handler) Chunk(root wire.Hash, i uint32) ([]byte, bool) {
	b, ok := h.Handler.Chunk(root, i)
	if ok {
		h.counter.add(h.counter.kind(len(b)), len(b))
	}
	return b, ok
}

// kind returns the kind of a chunk of a blob by its length.
func (c *Counter) kind(bytes int) Kind {
	switch {
	case bytes >= c.model:
		return Model
	case bytes <= c.payload:
		return Payload
	}
	return Update
}
