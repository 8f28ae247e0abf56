package node

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// commitments are the signed commitments that peers may ask for, and the spans that some members
// were given. Network goroutines read them while the loop writes.
type commitments struct {
	mu       sync.RWMutex // guards all below
	byRound  map[coordinator.Round]byMember
	members  map[key.Public]coordinator.Member // indexes of the members present
	now      coordinator.Round                 // the open round
	retained map[client.Share]bool             // whose commitments outlast their round
	given    map[wire.Hash][]byte              // spans of retained shares, by their hash
}

// byMember are the commitments of a round, those of each member in the order in which they came.
type byMember map[coordinator.Member][]*Authored

// Authored is a signed commitment and its author's key. It never changes.
type Authored struct {
	Author key.Public
	Signed dispute.Signed

	id    wire.Hash // of the commitment
	bytes []byte    // as gossip carries it
}

// ReadAuthored reads a signed commitment as gossip carries it. It does not check the signature.
func ReadAuthored(data []byte) (*Authored, bool) {
	a := &Authored{}
	if len(data) < len(a.Author) {
		return nil, false
	}
	copy(a.Author[:], data)
	var err error
	if a.Signed, err = dispute.ParseSigned(data[len(a.Author):]); err != nil {
		return nil, false
	}
	a.id, a.bytes = a.Signed.Commitment.ID(), bytes.Clone(data)
	return a, true
}

// authored returns a signed commitment as ReadAuthored does.
func authored(author key.Public, s dispute.Signed) *Authored {
	return &Authored{Author: author, Signed: s, id: s.Commitment.ID(), bytes: s.Append(author[:])}
}

// Verify checks the signature.
func (a *Authored) Verify() bool { return a.Signed.Verify(a.Author) }

// checked reads a commitment of the run, and checks its signature.
func (n *Node) checked(data []byte) (*Authored, bool) {
	a, ok := n.cfg.Read(data)
	return a, ok && a.Signed.Commitment.Run == n.cfg.ID && n.cfg.Verify(a)
}

const (
	// perMemberMax bounds the commitments kept of one member in one round. An honest member makes
	// one; a second is evidence, more are noise.
	perMemberMax = 3
	// roundsKept is for how many rounds a commitment is taken after its round.
	roundsKept = 8
)

// setMembers replaces the keys that take part, and their indexes.
func (s *commitments) setMembers(m map[key.Public]coordinator.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = m
}

// enter notes that a round has opened.
func (s *commitments) enter(round coordinator.Round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = round
}

// wants reports whether a commitment that its author gossips may matter: the author is the member
// that it names, its round is open, next, or over not long ago, and there is room for it.
func (s *commitments) wants(author key.Public, c *dispute.Commitment) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	member, ok := s.members[author]
	return ok && c.Member == member && current(c.Round, s.now) && len(s.byRound[c.Round][member]) < perMemberMax
}

// current reports whether commitments to a round still matter, or already, while round now is open.
func current(round, now coordinator.Round) bool {
	return round > 0 && round <= now+1 && round+roundsKept >= now
}

// put keeps a signed commitment for peers that ask. It reports false if the commitment was there
// already or its author has too many in the round.
func (s *commitments) put(a *Authored) bool {
	c := &a.Signed.Commitment
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.byRound[c.Round][c.Member]
	if len(list) >= perMemberMax || slices.ContainsFunc(list, func(o *Authored) bool { return o.id == a.id }) {
		return false
	}
	if s.byRound[c.Round] == nil {
		s.byRound[c.Round] = byMember{}
	}
	s.byRound[c.Round][c.Member] = append(list, a)
	return true
}

// of returns the commitments of a member in a round, in the order in which they came.
func (s *commitments) of(round coordinator.Round, member coordinator.Member) []*Authored {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byRound[round][member]
}

// by returns the commitment of a member in a round.
func (s *commitments) by(round coordinator.Round, member coordinator.Member) (*Authored, bool) {
	if list := s.of(round, member); len(list) > 0 {
		return list[0], true
	}
	return nil, false
}

// knows reports whether a commitment, as gossip carries it, is there. Its signature is good then.
func (s *commitments) knows(encoded []byte) bool {
	const roundAt = 32 + 32 + 4 // author, run, epoch; the member follows
	if len(encoded) < roundAt+8 {
		return false
	}
	round := coordinator.Round(binary.LittleEndian.Uint32(encoded[roundAt:]))
	member := coordinator.Member(binary.LittleEndian.Uint32(encoded[roundAt+4:]))
	return slices.ContainsFunc(s.of(round, member), func(a *Authored) bool { return bytes.Equal(a.bytes, encoded) })
}

// forget drops the commitments of rounds before a given one, except those to retained shares.
func (s *commitments) forget(before coordinator.Round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for round, members := range s.byRound {
		if round >= before {
			continue
		}
		maps.DeleteFunc(members, func(i coordinator.Member, _ []*Authored) bool {
			return !s.retained[client.Share{Round: round, Member: i}]
		})
		if len(members) == 0 {
			delete(s.byRound, round)
		}
	}
}

// retain replaces the shares whose commitments outlast their round, and the spans kept of them.
func (s *commitments) retain(shares []client.Share, list []client.Assignment) {
	retained := make(map[client.Share]bool, len(shares))
	for _, share := range shares {
		retained[share] = true
	}
	given := make(map[wire.Hash][]byte, len(list))
	for _, a := range list {
		given[a.Hash] = batch.Append(nil, a.Spans)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retained, s.given = retained, given
}

// retains reports whether the commitments to a share outlast its round.
func (s *commitments) retains(share client.Share) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.retained[share]
}

// spans returns the encoding of the spans with a hash, nil if they are not known.
func (s *commitments) spans(hash wire.Hash) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.given[hash]
}

// received takes a commitment whose signature is good. Only commitments of members are kept for
// others.
func (n *Node) received(a *Authored) { n.take(a, false) }

// take is received; fresh says that this one was kept just now.
func (n *Node) take(a *Authored, fresh bool) {
	if n.height == 0 || n.ctx.Err() != nil {
		return
	}
	c := &a.Signed.Commitment
	if c.Member >= n.state.Count() || n.state.Key(c.Member) != a.Author {
		return
	}
	if !current(c.Round, n.state.Round()) && !n.commitments.retains(client.Share{Round: c.Round, Member: c.Member}) {
		return
	}
	if (fresh || n.commitments.put(a)) && a.Author != n.self {
		n.observe(event.Committed{
			Epoch: c.Epoch, Round: c.Round, Member: c.Member,
			Loss: float32(c.Loss) / 1000, Bytes: uint64(c.PayloadBytes), Commitment: a.id,
		})
	}
	n.hear(client.CommitmentReceived{Signed: &a.Signed, Signer: a.Author, ID: a.id})
}

// unsaved is an own commitment that is not saved yet, and so not published, and whom it is for.
type unsaved struct {
	dispute.Signed
	to []key.Public
}

// commit signs a commitment. It is published once it is saved, so that a crash cannot make this
// member sign another one for the round.
func (n *Node) commit(a client.Commit) {
	c := a.Commitment
	n.observe(event.Signed{Epoch: c.Epoch, Round: c.Round, Member: c.Member, Commitment: c.ID()})
	n.unsaved = &unsaved{c.Sign(n.cfg.Key), a.To}
	n.republish(c.Round, a.To)
}

// republish publishes the own commitment of a round again. If it could not be saved, saving is
// tried again: after a crash this member would not know that it had signed it, and two commitments
// for one round are proof of a cheat.
func (n *Node) republish(round coordinator.Round, to []key.Public) {
	if s := n.unsaved; s != nil && s.Commitment.Round == round {
		switch {
		case n.instance.refused || !n.clear(round):
		case n.knowsOther(s.Commitment):
			n.unsaved = nil
			n.note("this round's result is not sent: this key has signed another one for the round")
		default:
			n.saveCommitment(s)
		}
		return
	}
	n.publish(round, to)
}

func (n *Node) publish(round coordinator.Round, to []key.Public) {
	if i, ok := n.place(n.state); ok {
		if b, ok := n.commitments.by(round, i); ok {
			n.exchange.publish(round, b, to)
		}
	}
}

// saveCommitment saves a commitment, and the update that it commits to, and then publishes it.
func (n *Node) saveCommitment(s *unsaved) {
	var failed error
	round, keep := s.Commitment.Round, n.ownKept()
	own := OwnResult{Round: round, Signed: s.Append(nil), Update: n.ownUpdate(s.Commitment)}
	n.cfg.Loop.Work(0, func() {
		if n.cfg.Store != nil {
			failed = n.cfg.Store.SaveOwn(own, keep)
		}
	}, func() {
		switch {
		case n.unsaved != s: // saved by another try, or of a round that is over
		case n.instance.refused:
		case failed != nil:
			n.note("this round's result is not sent, because it could not be saved: " + failed.Error())
			n.unable(round, "it could not be saved: "+failed.Error())
		default:
			n.unsaved, n.unfit = nil, unfit{}
			n.commitments.put(authored(n.self, s.Signed))
			n.publish(round, s.to)
		}
	})
}

// restore keeps a commitment read from the disk for peers that ask, if its author signed it.
func (n *Node) restore(s dispute.Signed) {
	if s.Commitment.Run != n.cfg.ID || s.Commitment.Member >= n.state.Count() || s.Commitment.Run.IsZero() {
		return
	}
	if author := n.state.Key(s.Commitment.Member); s.Verify(author) {
		n.commitments.put(authored(author, s))
	}
}
