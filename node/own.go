package node

import (
	"errors"
	"fmt"
	"sort"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/wire"
)

// A result of this member is on disk before its commitment is public. So a member that was killed
// signs no other one for the round, and still has what it committed to: if all who fetched it lost
// power too, nobody else does.
//
// A check of it needs the optimizer state that it began from, which only this member has, and a
// state that is served to nobody costs a part of the stake. So that one is kept too, written
// while the round is trained: it has the size of the model.

// OwnResult is a commitment of this member and the update that it commits to.
type OwnResult struct {
	Round  coordinator.Round
	Signed []byte // the signed commitment, which names the optimizer state that it began from
	Update []byte // nil if only the commitment was kept
}

// ownKept is the number of own results that are kept. Between peers, those whose fate is still open
// when a round has just ended: of the rounds that are attested, trained and applied. A miner
// reveals one before it commits to the next.
func (n *Node) ownKept() coordinator.Round {
	if _, later := n.exchange.(publisher); later {
		return 1
	}
	return coordinator.Round(n.state.Config().Overlap) + 2
}

// ownUpdate returns the update of a result of this member that is about to be public.
func (n *Node) ownUpdate(c dispute.Commitment) []byte {
	if update, ok := n.sealed[c.Round]; ok {
		return update
	}
	update, _ := n.blobs.Payload(c.Payload)
	return update
}

// saveBegun keeps the optimizer state from which this member's training begins, nil for the fresh
// one, if others may check the result.
func (n *Node) saveBegun(v *blobs.Version) {
	if n.cfg.Store != nil && !n.stateless() && v != nil && n.state.Config().VerificationPercent > 0 && n.roster.Present() > 1 {
		n.disk.File(v, func(error) {})
	}
}

// ownResult is a result of this member that was read back. update and begun are nil if they are not
// there.
type ownResult struct {
	dispute.Signed
	update []byte
	begun  *blobs.Version
}

// loadOwn reads back this member's results in the order of their rounds, off the loop. doubt
// reports whether one cannot be read: this member may have signed something that it does not know.
func (n *Node) loadOwn() (list []ownResult, doubt bool, err error) {
	saved, unread := n.cfg.Store.LoadOwn()
	doubt = unread != nil
	for _, o := range saved {
		signed, failed := dispute.ParseSigned(o.Signed)
		switch {
		case failed != nil || signed.Commitment.Round != o.Round:
			doubt = true
		case signed.Commitment.Run == n.cfg.ID:
			r := ownResult{Signed: signed, update: o.Update}
			if !n.stateless() {
				r.begun, _ = n.optim.Recall(n.cfg.Store, signed.Commitment.Prev, false)
			}
			if o.Update != nil { // beside the key there is what was signed, no more
				if root, _ := n.promise(o.Update); root != signed.Commitment.Payload {
					r.update = nil
					err = fmt.Errorf("the update of round %d that was kept is not the one that was committed to", o.Round)
				}
			}
			list = append(list, r)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Commitment.Round < list[j].Commitment.Round })
	return list, doubt, errors.Join(unread, err)
}

// takeBackOwn serves this member's results again, and returns their commitments. state is the
// optimizer state that this member still has.
func (n *Node) takeBackOwn(list []ownResult, state wire.Hash) (signed []dispute.Signed) {
	for _, o := range list {
		c := o.Commitment
		signed = append(signed, o.Signed)
		n.restore(o.Signed)
		if o.begun != nil {
			n.held[n.optim.Keep(o.begun).Root] = true
		}
		if o.update != nil && n.answersFor(o, state) {
			n.put(c.Round, o.update)
		}
	}
	return signed
}

// answersFor reports whether this member can still answer for a result of this member from before
// its start. If not it does not serve the update: what is not accepted, because no other member has
// it either, costs a round, and is not checked.
func (n *Node) answersFor(o ownResult, state wire.Hash) bool {
	cfg, prev := n.state.Config(), o.Commitment.Prev
	return n.stateless() || cfg.VerificationPercent == 0 || n.roster.Present() <= 1 || prev == cfg.StateHash || prev == state || o.begun != nil
}
