// Package gossip has the signed commitments of a run: those that a member's peers may ask for, how
// they are asked for, how a program that takes no part reads them, and how a relay passes them on.
//
// Gossip carries one signed commitment with its author's key:
//
//	author [32]byte | signed commitment
//
// A question names a round and members. The answer lists the commitments of theirs that the peer
// holds, each as in gossip:
//
//	question: u8 1 | u32 round | u32 n | n × u32 member
//	answer:   n × (u32 length | author | signed commitment)
package gossip

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/client/table"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

const (
	// PerMemberMax bounds the commitments kept of one member in one round. An honest member makes
	// one; a second is evidence, more are noise.
	PerMemberMax = 3
	// QuestionCommitments is the first byte of a question.
	QuestionCommitments = 1
	// questionMembersMax bounds a question; the machine asks for 256 members at a time.
	questionMembersMax = 1024
	// AskFor bounds the wait for an answer.
	AskFor = 5 * time.Second
	// RoundsKept is for how many rounds a commitment is taken after its round.
	RoundsKept = 8
)

// Commitments are the signed commitments that peers may ask for, and the spans that some members
// were given. Network goroutines read them while the loop writes.
type Commitments struct {
	mu       sync.RWMutex // guards all below
	byRound  map[coordinator.Round]*byMember
	members  map[key.Public]coordinator.Member // indexes of the members present
	now      coordinator.Round                 // the open round
	retained map[client.Share]bool             // whose commitments outlast their round
	given    map[wire.Hash][]byte              // spans of retained shares, by their hash
}

// NewCommitments returns none.
func NewCommitments() *Commitments {
	return &Commitments{byRound: map[coordinator.Round]*byMember{}}
}

// byMember are the commitments of a round, at most PerMemberMax of each member, in the order in
// which they came.
type byMember = table.Table[coordinator.Member, *Authored]

// Authored is a signed commitment and its author's key. Nobody changes it.
type Authored struct {
	Author key.Public
	Signed dispute.Signed

	ID    wire.Hash    // of the commitment
	Bytes []byte       // as gossip carries it
	Event client.Event // a client.CommitmentReceived that nobody showed on a question

	judged uint32 // what Verify found; atomic
}

// Read reads a signed commitment as gossip carries it. It does not check the signature.
func Read(data []byte) (*Authored, bool) {
	a := &Authored{}
	if len(data) < len(a.Author) {
		return nil, false
	}
	copy(a.Author[:], data)
	var err error
	if a.Signed, err = dispute.ParseSigned(data[len(a.Author):]); err != nil {
		return nil, false
	}
	return a.complete(bytes.Clone(data)), true
}

// NewAuthored returns a signed commitment as Read does.
func NewAuthored(author key.Public, s dispute.Signed) *Authored {
	a := &Authored{Author: author, Signed: s}
	return a.complete(s.Append(author[:]))
}

func (a *Authored) complete(encoded []byte) *Authored {
	a.ID, a.Bytes = a.Signed.Commitment.ID(), encoded
	a.Event = client.CommitmentReceived{Signed: &a.Signed, Signer: a.Author, ID: a.ID}
	return a
}

// Verify reports whether the author signed it. It checks that once. Any goroutine may call it.
func (a *Authored) Verify() bool {
	const good, bad = 1, 2
	if atomic.LoadUint32(&a.judged) == 0 {
		found := uint32(bad)
		if a.Signed.Verify(a.Author) {
			found = good
		}
		atomic.StoreUint32(&a.judged, found)
	}
	return atomic.LoadUint32(&a.judged) == good
}

// Verified reports whether the signature has been checked, whatever came of it.
func (a *Authored) Verified() bool { return atomic.LoadUint32(&a.judged) != 0 }

// SetMembers replaces the keys that take part, and their indexes.
func (s *Commitments) SetMembers(m map[key.Public]coordinator.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = m
}

// Enter notes that a round has opened.
func (s *Commitments) Enter(round coordinator.Round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = round
}

// Wants reports whether a commitment that its author gossips may matter: the author is the member
// that it names, its round is open, next, or over not long ago, and there is room for it.
func (s *Commitments) Wants(author key.Public, c *dispute.Commitment) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	member, ok := s.members[author]
	return ok && c.Member == member && Current(c.Round, s.now) && len(s.list(c.Round, member)) < PerMemberMax
}

// Current reports whether commitments to a round still matter, or already, while round now is open.
func Current(round, now coordinator.Round) bool {
	return round > 0 && round <= now+1 && round+RoundsKept >= now
}

// Put keeps a signed commitment for peers that ask. It reports false if the commitment was there
// already or its author has too many in the round.
func (s *Commitments) Put(a *Authored) bool {
	c := &a.Signed.Commitment
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list(c.Round, c.Member)
	if len(list) == PerMemberMax || slices.ContainsFunc(list, func(b *Authored) bool { return b.ID == a.ID }) {
		return false
	}
	if s.byRound[c.Round] == nil {
		s.byRound[c.Round] = &byMember{}
	}
	s.byRound[c.Round].Set(c.Member, append(list, a), coordinator.Member(len(s.members)))
	return true
}

// list is Of, with the lock held.
func (s *Commitments) list(round coordinator.Round, member coordinator.Member) []*Authored {
	if of := s.byRound[round]; of != nil {
		return of.Of(member)
	}
	return nil
}

// Of returns the commitments of a member in a round, in the order in which they came. Nobody
// changes the list.
func (s *Commitments) Of(round coordinator.Round, member coordinator.Member) []*Authored {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.list(round, member)
}

// By returns the commitment of a member in a round.
func (s *Commitments) By(round coordinator.Round, member coordinator.Member) (*Authored, bool) {
	list := s.Of(round, member)
	if len(list) == 0 {
		return nil, false
	}
	return list[0], true
}

// Knows reports whether a commitment, as gossip carries it, is there. Its signature is good then.
func (s *Commitments) Knows(encoded []byte) bool {
	const roundAt = 32 + 32 + 4 // author, run, epoch; the member follows
	if len(encoded) < roundAt+8 {
		return false
	}
	round := coordinator.Round(binary.LittleEndian.Uint32(encoded[roundAt:]))
	member := coordinator.Member(binary.LittleEndian.Uint32(encoded[roundAt+4:]))
	return slices.ContainsFunc(s.Of(round, member), func(a *Authored) bool { return bytes.Equal(a.Bytes, encoded) })
}

// Forget drops the commitments of rounds before a given one, except those to retained shares.
func (s *Commitments) Forget(before coordinator.Round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := map[coordinator.Round]*byMember{}
	for share := range s.retained {
		list := s.list(share.Round, share.Member)
		if share.Round >= before || len(list) == 0 {
			continue
		}
		if kept[share.Round] == nil {
			kept[share.Round] = &byMember{}
		}
		kept[share.Round].Set(share.Member, list, coordinator.Member(len(s.members)))
	}
	maps.DeleteFunc(s.byRound, func(round coordinator.Round, _ *byMember) bool { return round < before })
	maps.Copy(s.byRound, kept)
}

// Retain replaces the shares whose commitments outlast their round, and the spans kept of them.
func (s *Commitments) Retain(shares []client.Share, list []client.Assignment) {
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

// Retains reports whether the commitments to a share outlast its round.
func (s *Commitments) Retains(share client.Share) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.retained[share]
}

// Spans returns the encoding of the spans with a hash, nil if they are not known.
func (s *Commitments) Spans(hash wire.Hash) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.given[hash]
}

// SpansMax bounds the spans of an answer, which are of one round.
const SpansMax = 64

// AnsweredSpans reads the answer to a question for spans.
func AnsweredSpans(answer []byte) ([]batch.Span, bool) {
	r := wire.NewReader(answer)
	spans := batch.Parse(&r, SpansMax)
	return spans, r.Done() == wire.OK
}

// AppendQuestion appends a question for commitments.
func AppendQuestion(dst []byte, round coordinator.Round, members []coordinator.Member) []byte {
	dst = wire.AppendU8(dst, QuestionCommitments)
	dst = wire.AppendU32(dst, uint32(round))
	dst = wire.AppendU32(dst, uint32(len(members)))
	for _, i := range members {
		dst = wire.AppendU32(dst, uint32(i))
	}
	return dst
}

// Milli returns a loss in thousandths, saturated.
func Milli(loss float32) uint32 {
	x := float64(loss) * 1000
	if !(x > 0) {
		return 0
	}
	return uint32(min(x, math.MaxUint32))
}

// Answered has the commitments of an answer taken, up to the first that is not checked.
func Answered(answer []byte, checked func([]byte) (*Authored, bool), take func(*Authored)) {
	for r := wire.NewReader(answer); r.Len() > 0; {
		b := r.Var(p2p.MaxGossip)
		if r.Err() != wire.OK {
			return
		}
		a, ok := checked(b)
		if !ok {
			return
		}
		take(a)
	}
}

// AnswerQuestion answers a question for commitments, without its first byte.
func (s *Commitments) AnswerQuestion(r *wire.Reader) []byte {
	round, count := coordinator.Round(r.U32()), r.U32()
	if r.Err() != wire.OK || count > questionMembersMax {
		return nil
	}
	wanted := make([]coordinator.Member, count)
	for i := range wanted {
		wanted[i] = coordinator.Member(r.U32())
	}
	if r.Done() != wire.OK {
		return nil
	}
	slices.Sort(wanted)
	var list []*Authored
	size := 0
	for _, i := range slices.Compact(wanted) {
		for _, k := range s.Of(round, i) {
			if with := size + 4 + len(k.Bytes); with <= p2p.MaxAnswer {
				list, size = append(list, k), with
			}
		}
	}
	if size == 0 {
		return nil
	}
	out := make([]byte, 0, size)
	for _, k := range list {
		out = wire.AppendVar(out, k.Bytes)
	}
	return out
}
