package node

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/wire"
)

// Two commitments by one key for one round convict the key, even if it did not mean to cheat: two
// machines with one key, or a process that does not know what the process before it signed. So a
// node finds out before its first commitment whether there may be another one.
//
//   - What the node before it signed is in the store. If there is no record while the run already
//     has the key as a member, or the run accepted a newer result than the record's, the node is in
//     doubt: it leaves out the round that is open (client.Loaded.InDoubt).
//   - The peers are asked for the key's own commitments to the round. What they hold counts as this
//     member's own (client.Machine).
//   - Every node announces, beside its addresses, a number that differs between processes. A node
//     whose announcement is replaced by another soon after it appeared ends with an
//     [ElsewhereError]; one that has been there for longer announces itself again. So a second
//     process ends and the first goes on, even if neither reaches the other.

const (
	// instancePrefix begins the number among the addresses. It is a valid multiaddress that nobody
	// dials.
	instancePrefix = "/memory/"
	// youngFor is how long a node gives way to another one with its key. The other needs
	// peersEvery to see that it was replaced, and some blocks to announce itself again.
	youngFor = 30 * time.Second
	// doubtFor is how long a node in doubt has announced itself before it commits. The process that
	// runs already needs that time to announce itself again.
	doubtFor = 10 * time.Second
	// replacedMax is how often a node announces itself again.
	replacedMax = 3
	// ownAsked bounds the peers that are asked for own commitments, and ownFor the wait for them.
	ownAsked = 32
	ownFor   = 2 * time.Second
)

// An ElsewhereError says that another process takes part with this member's key.
type ElsewhereError struct {
	Key   key.Public
	Addrs []string // where it says it can be reached; may be empty
}

func (e *ElsewhereError) Error() string {
	where := "in another place"
	if len(e.Addrs) > 0 {
		where = "at " + strings.Join(e.Addrs, ", ")
	}
	return fmt.Sprintf("key %s already runs %s; two processes with one key would sign two results for one round, which costs the whole stake: stop that one first, or give each machine a key of its own", e.Key, where)
}

// instance is what a node knows about other processes with its key.
type instance struct {
	addr     string    // announced beside the addresses
	prior    bool      // the key was a member when this node began
	doubt    bool      // another process may have signed for the round that was open then
	since    time.Time // when this member's announcement was first seen on the ledger
	polls    int       // answers of the ledger with this member's announcement
	own      bool      // the last answer had it
	replaced int
	asking   bool
	clear    bool // the first commitment may be made
	refused  bool // another process has the key; nothing is signed any more
}

// instanceAddr returns the address that tells this process from others with its key.
func (n *Node) instanceAddr() string {
	number := n.cfg.Instance
	if number == 0 {
		h := wire.Sum("entrain/instance", n.self[:], []byte(n.cfg.Loop.Now().Format(time.RFC3339Nano)))
		for _, b := range h[:8] {
			number = number<<8 | uint64(b)
		}
	}
	return instancePrefix + strconv.FormatUint(number, 10)
}

// ownAddrs are the addresses to announce.
func (n *Node) ownAddrs() []string {
	own := n.exchange.addrs()
	return append(slices.Clone(own[:min(len(own), host.AddrsMax-1)]), n.instance.addr)
}

// dialable returns addrs without the numbers of processes, and without buckets.
func dialable(addrs []string) []string {
	return slices.DeleteFunc(slices.Clone(addrs), func(a string) bool { return strings.HasPrefix(a, instancePrefix) || bucket.IsLocation(a) })
}

// announced takes what the ledger has as this key's addresses. After the run's end the key's owner
// may have the ledger forget them, for the rent.
func (n *Node) announced(addrs []string) {
	x, now := &n.instance, n.cfg.Loop.Now()
	before := x.own
	x.own = slices.Contains(addrs, x.addr)
	switch {
	case x.own:
		if x.polls++; x.since.IsZero() {
			x.since = now
		}
	case before && n.state.Phase() != coordinator.Finished:
		if x.replaced++; x.replaced >= replacedMax || now.Sub(x.since) < youngFor {
			n.refuse(&ElsewhereError{Key: n.self, Addrs: dialable(addrs)})
		}
	}
}

// refuse ends the node, which does nothing more in the run: not even leave it.
func (n *Node) refuse(err error) {
	if n.instance.refused {
		return
	}
	n.instance.refused = true
	if n.cfg.Failed != nil {
		n.cfg.Failed(err)
		return
	}
	n.note(err.Error())
	n.Abandon(func() {})
}

// doubtful reports whether another process may have signed for the round that is open, given the
// last commitment of this member that the store has.
func (n *Node) doubtful(last dispute.Commitment) bool {
	i, ok := n.place(n.state)
	if !n.instance.prior || !ok {
		return false
	}
	if last.Run != n.cfg.ID {
		return true
	}
	now := n.state.Round()
	for number := now; number > last.Round && number+ringRounds > now; number-- {
		r, ok := n.state.At(number)
		if !ok {
			continue
		}
		if _, committed := r.Committed(i); committed || r.Holders(i) > 0 || r.Accepted(i) {
			return true
		}
	}
	return false
}

// ringRounds is how many rounds the coordinator's state holds.
const ringRounds = 4

// clear reports whether the first commitment of this process, to a round, may be made. If not, it
// calls republish once that may have changed.
func (n *Node) clear(round coordinator.Round) bool {
	x := &n.instance
	i, ok := n.place(n.state)
	a, asks := n.exchange.(asker)
	switch {
	case x.clear:
		return true
	case x.asking || !ok || !n.established(asks):
		return false
	}
	others := n.others(round, ownAsked)
	if !asks || len(others) == 0 {
		x.clear = true
		return true
	}
	x.asking = true
	a.askOwn(round, i, others, func(heard bool) {
		x.asking = false
		if x.clear = heard; heard {
			n.republish(round, nil)
		}
	})
	return false
}

// established reports whether no other process with this key can be about to commit. Where peers
// cannot be asked, the ledger shows what is committed, and takes no second one.
func (n *Node) established(asks bool) bool {
	x := &n.instance
	switch {
	case x.doubt:
		return x.own && x.polls > 1 && n.cfg.Loop.Now().Sub(x.since) >= doubtFor
	case x.prior || !asks: // with its record, or with the ledger's
		return true
	}
	return x.own && x.polls > 1
}

// others returns up to most members present besides this one. Those elected in the round come
// first: where members follow, they alone are sent all commitments. The choice of the rest differs
// for each member.
func (n *Node) others(round coordinator.Round, most int) (list []key.Public) {
	count := n.state.Count()
	first, _ := n.place(n.state)
	ask := func(i coordinator.Member) {
		if p := n.state.Key(i); p != n.self && n.state.Status(i).Present() && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	if r, ok := n.state.At(round); ok {
		for _, i := range r.Witnesses() {
			ask(i)
		}
	}
	for k := coordinator.Member(0); k < count && len(list) < most; k++ {
		ask((first + k) % count)
	}
	return list[:min(most, len(list))]
}

// knowsOther reports whether another commitment by this member to the round of c is known.
func (n *Node) knowsOther(c dispute.Commitment) bool {
	if r, ok := n.state.At(c.Round); ok {
		if id, ok := r.Committed(c.Member); ok && id != c.ID() {
			return true
		}
	}
	return slices.ContainsFunc(n.commitments.Of(c.Round, c.Member), func(a *gossip.Authored) bool { return a.ID != c.ID() })
}
