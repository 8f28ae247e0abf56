package node

import (
	"time"

	"github.com/entrain-network/entrain/client"
)

// Stop withdraws from the run, saves the state, closes the network and then calls done, on the
// loop. It waits for the ledger at most patience. Unless patience is 0, it first sees through what
// others still need of this member (client.Machine.Needed), because a member that does not serve
// what its results are checked with loses points and stake.
func (n *Node) Stop(patience time.Duration, done func()) {
	if n.onStop != nil {
		return
	}
	n.onStop = done
	n.step(client.Stopping{})
	n.cfg.Loop.After(patience, func() {
		if patience == 0 || !n.owes() {
			n.end()
		}
	})
	if n.leaveAt = n.cfg.Loop.Now().Add(patience); patience > 0 && n.owes() {
		text, _ := n.exchange.owes()
		n.note(text)
	}
	n.endIfLeft()
}

// owes reports whether a node that leaves still waits for the end of its duties.
func (n *Node) owes() bool {
	if n.height == 0 || !n.machine.Needed() || n.ledgerSilent() {
		return false
	}
	_, most := n.exchange.owes()
	return n.cfg.Loop.Now().Sub(n.leaveAt) < most
}

// silentAfter is how long a leaving node waits for the ledger: for news after a phase should have
// ended, or for the answer to any message. Then it takes the ledger for gone, without which nothing
// can be seen through.
const silentAfter = time.Minute

func (n *Node) ledgerSilent() bool {
	if !n.silentSince.IsZero() && n.cfg.Loop.Now().Sub(n.silentSince) > silentAfter {
		return true
	}
	deadline := n.state.Deadline()
	return deadline != 0 && n.cfg.Loop.Now().After(time.UnixMilli(int64(deadline)).Add(silentAfter))
}

// endIfLeft ends the node once the run no longer counts on it.
func (n *Node) endIfLeft() {
	if n.height == 0 {
		n.end()
		return
	}
	i, ok := n.place(n.state)
	gone := !ok || !n.state.Member(i).Status.Present() || n.cfg.Loop.Now().After(n.leaveAt)
	if gone && !n.owes() {
		n.end()
	}
}

// Abandon ends the node as Stop does, but without leaving the run: another process goes on in it.
func (n *Node) Abandon(done func()) {
	n.instance.refused = true
	n.onStop = done
	n.end()
}

func (n *Node) end() {
	if n.stopped {
		return
	}
	n.stopped = true
	n.saveNow(func() {
		n.cancel()
		leave := func() {
			if err := n.exchange.close(); err != nil {
				n.note("leaving the others: " + err.Error())
			}
			n.onStop()
		}
		if b, ok := n.exchange.(*buckets); ok {
			b.retire(leave)
		} else {
			leave()
		}
	})
}
