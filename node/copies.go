package node

import (
	"errors"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/wire"
)

// helper is an exchange whose members keep copies of what some of them lack (client/copies.go).
type helper interface {
	// lack uploads whose results this member lacks.
	lack(a client.Lack)

	// askLacks gets the lists of others.
	askLacks(a client.AskLacks, done func(lists [][]byte))

	// copy uploads a copy of a result.
	copy(a client.Copy)

	// findCopy looks for a copy, and keeps the slice in it.
	findCopy(a client.FindCopy, done func(ok bool))
}

// lackFor bounds getting a list, and a copy with fetchForByte for each of its bytes, so that a
// bucket that does not answer delays no copies.
const lackFor = 2 * time.Second

func (b *buckets) lack(a client.Lack) {
	b.put("saying which results this member lacks", a.Round, bucket.KindLack, wire.Hash{}, a.Members, func(error) {})
}

func (b *buckets) askLacks(a client.AskLacks, done func([][]byte)) {
	var lists [][]byte
	left := 1
	finish := func() {
		if left--; left == 0 {
			done(lists)
		}
	}
	for _, author := range a.Of {
		at, known := b.where[author]
		if !known {
			continue
		}
		left++
		w := bucket.Want{Location: at, Name: bucket.Name{Run: b.run(), Window: a.Round, Kind: bucket.KindLack, Member: author}, Max: bucket.LackBytesMax}
		b.getWithin(w, b.part(lackFor), func(body []byte, err error) {
			if err == nil {
				lists = append(lists, body)
			}
			finish()
		})
	}
	b.node.cfg.Loop.Post(finish)
}

// part returns a time, or an eighth of a window if that is less.
func (b *buckets) part(most time.Duration) time.Duration {
	return min(most, time.Duration(b.node.state.Config().RoundTrainMs)*time.Millisecond/8)
}

func (b *buckets) copy(a client.Copy) {
	n := b.node
	reveal, ok := n.blobs.Payload(n.revealKey(a.Payload, a.Seed))
	for _, c := range n.commitments.Of(a.Round, a.Member) {
		if c.ID != a.ID || !ok {
			continue
		}
		b.put("copying a result of member "+n.memberName(a.Member), a.Round, bucket.KindCopy, a.ID, bucket.AppendCopy(nil, c.Signed, reveal), func(error) {})
	}
}

var errNoCopy = errors.New("it is not a copy of the member's result")

func (b *buckets) findCopy(a client.FindCopy, done func(bool)) {
	n := b.node
	author := n.state.Key(a.Member)
	var signed dispute.Signed
	var reveal []byte
	check := func(body []byte) (err error) {
		if signed, reveal, err = bucket.ParseCopy(body); err != nil {
			return err
		}
		if signed.Commitment.Member != a.Member || !signed.Verify(author) {
			return errNoCopy
		}
		if err = n.opens(reveal, signed.Commitment.Payload, a.Seed); err == nil {
			err = n.cfg.Engine.Check(reveal)
		}
		return err
	}
	start := n.cfg.Loop.Now()
	var try func(k int)
	try = func(k int) {
		if k == len(a.From) {
			n.cfg.Loop.Post(func() { done(false) })
			return
		}
		at, known := b.where[a.From[k]]
		if !known {
			try(k + 1)
			return
		}
		w := bucket.Want{Location: at, Name: bucket.Name{Run: b.run(), Window: a.Round, Kind: bucket.KindCopy, Member: a.From[k], Content: a.ID},
			Max: dispute.SignedBytes + n.cfg.Engine.PayloadMax(), Check: check}
		b.getWithin(w, b.part(lackFor+time.Duration(w.Max)*fetchForByte), func(_ []byte, err error) {
			if err != nil {
				b.complain("copy by another of the result", a.Member, err)
				try(k + 1)
				return
			}
			n.observe(event.Fetched{Round: a.Round, Member: a.Member, Bytes: uint64(len(reveal)), Seconds: n.cfg.Loop.Now().Sub(start).Seconds()})
			n.blobs.PutReveal(a.Round, n.revealKey(signed.Commitment.Payload, a.Seed), reveal)
			n.received(gossip.NewAuthored(author, signed))
			done(true)
		})
	}
	try(0)
}

// help performs what the machine asks for about copies.
func (n *Node) help(a client.Action) {
	x, ok := n.exchange.(helper)
	if !ok {
		return
	}
	switch a := a.(type) {
	case client.Lack:
		x.lack(a)
	case client.AskLacks:
		x.askLacks(a, func(lists [][]byte) { n.step(client.Lacked{Round: a.Round, Lists: lists}) })
	case client.Copy:
		x.copy(a)
	case client.FindCopy:
		x.findCopy(a, func(ok bool) { n.step(client.Found{Round: a.Round, Member: a.Member, ID: a.ID, OK: ok}) })
	}
}
