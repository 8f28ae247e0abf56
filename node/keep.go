package node

import (
	"errors"
	"slices"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/wire"
)

// SavedCase is what it takes to argue about a share, beside the blobs that it begins from.
type SavedCase struct {
	client.Kept      // the commitment names the parameters and the optimizer state
	Fresh       bool // it begins from the fresh one
}

// keep writes down what it takes to argue about a share of this member that is checked.
func (n *Node) keep(a client.Keep) {
	c := a.Commitment
	in := input{params: n.params.Find(c.Params)}
	fresh := n.stateless() || c.Prev == n.state.Config().StateHash
	if !fresh {
		in.state = n.optim.Find(c.Prev)
	}
	if in.params == nil || in.state == nil && !fresh {
		return // it was lost in a crash before its check was drawn
	}
	if b, ok := n.commitments.By(a.Round, a.Member); ok && b.Signed.Commitment == c {
		a.Signature = b.Signed.Signature
	}
	n.saveCase(a.Kept, in, func() {}) // the machine retains the input while the check is open
}

// saveCase writes down a case, unless its input is let go of before the disk comes to it.
func (n *Node) saveCase(k client.Kept, in input, done func()) {
	if n.cases == nil {
		done()
		return
	}
	n.saved[k.Share] = true
	n.disk.FileBoth(in.params, in.state, func(failed error) {
		n.cfg.Loop.Work(0, func() {
			if failed == nil {
				failed = n.cases.SaveCase(SavedCase{Kept: k, Fresh: in.state == nil})
			}
		}, func() {
			switch {
			case !n.saved[k.Share]: // it was over meanwhile
				n.dropCase(k.Share)
			case failed != nil:
				n.note("what a dispute may need was not saved: " + failed.Error())
			}
			done()
		})
	})
}

// dropCases deletes the cases written down that are not this member's business any more.
func (n *Node) dropCases(mine []client.Share) {
	for s := range n.saved {
		if !slices.Contains(mine, s) {
			delete(n.saved, s)
			n.dropCase(s)
		}
	}
}

func (n *Node) dropCase(s client.Share) {
	var failed error
	n.cfg.Loop.Work(0, func() { failed = n.cases.DropCase(s) }, func() {
		if failed != nil {
			n.note("deleting what a dispute needed: " + failed.Error())
		}
	})
}

// recalledCase is a case read back.
type recalledCase struct {
	client.Kept
	input
}

// loadCases reads back the cases that were written down, off the loop. It leaves out those whose
// blobs are not what the commitment names.
func (n *Node) loadCases() (cases []recalledCase, err error) {
	if n.cases == nil {
		return nil, nil
	}
	list, err := n.cases.LoadCases()
	for _, c := range list {
		if c.Commitment.Run != n.cfg.ID {
			continue
		}
		prev := c.Commitment.Prev
		if c.Fresh {
			prev = wire.Hash{}
		}
		in, failed := n.recallInput(c.Commitment.Params, prev, false)
		if err = errors.Join(err, failed); failed == nil {
			cases = append(cases, recalledCase{c.Kept, in})
		}
	}
	return cases, err
}

// takeBack serves what was read of the cases again, until the machine drops those that are over.
func (n *Node) takeBack(cases []recalledCase) (list []client.Kept) {
	for _, c := range cases {
		n.saved[c.Share] = true
		n.held[n.params.Keep(c.params).Root] = true
		if c.state != nil {
			n.held[n.optim.Keep(c.state).Root] = true
		}
		if c.Member < n.state.Count() {
			n.restore(dispute.Signed{Commitment: c.Commitment, Signature: c.Signature})
		}
		list = append(list, c.Kept)
	}
	return list
}
