package node

import (
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node/gossip"
)

// checked reads a commitment of the run, and checks its signature.
func (n *Node) checked(data []byte) (*gossip.Authored, bool) {
	a, ok := n.cfg.Read(data)
	return a, ok && a.Signed.Commitment.Run == n.cfg.ID && a.Verify()
}

// received takes a commitment whose signature is good. Only commitments of members are kept for
// others.
func (n *Node) received(a *gossip.Authored) { n.take(a, key.Public{}, false) }

// take is received; from has shown it on a question, fresh says that it was kept just now.
func (n *Node) take(a *gossip.Authored, from key.Public, fresh bool) {
	if n.height == 0 || n.ctx.Err() != nil {
		return
	}
	c := &a.Signed.Commitment
	if c.Member >= n.state.Count() || n.state.Key(c.Member) != a.Author {
		return
	}
	if !gossip.Current(c.Round, n.state.Round()) && !n.commitments.Retains(client.Share{Round: c.Round, Member: c.Member}) {
		return
	}
	if (fresh || n.commitments.Put(a)) && a.Author != n.self {
		n.observe(event.Committed{
			Epoch: c.Epoch, Round: c.Round, Member: c.Member,
			Loss: float32(c.Loss) / 1000, Bytes: uint64(c.PayloadBytes), Commitment: a.ID,
		})
	}
	if from.IsZero() {
		n.hear(a.Event)
		return
	}
	n.hear(client.CommitmentReceived{Signed: &a.Signed, Signer: a.Author, ID: a.ID, From: from})
}

// unsaved is a commitment of this member that is not saved yet, and so not published, and whom it
// is for.
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

// republish publishes this member's commitment of a round again. If it could not be saved, saving
// is tried again: after a crash this member would not know that it had signed it, and two
// commitments for one round are proof of a cheat.
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
		if b, ok := n.commitments.By(round, i); ok {
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
			n.commitments.Put(gossip.NewAuthored(n.self, s.Signed))
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
		n.commitments.Put(gossip.NewAuthored(author, s))
	}
}
