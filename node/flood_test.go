package node

import (
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// readings are the commitments that a node has read.
type readings []*gossip.Authored

func (l *readings) read(data []byte) (*gossip.Authored, bool) {
	a, ok := gossip.Read(data)
	if ok {
		*l = append(*l, a)
	}
	return a, ok
}

// verified returns how many signatures were checked.
func (l *readings) verified() (n int) {
	for _, a := range *l {
		if a.Verified() {
			n++
		}
	}
	return n
}

// listener is a handler in a run whose open round is 10, with members 0 to 3.
func listener() (h *handler, read *readings) {
	read = &readings{}
	n := &Node{cfg: Config{ID: wire.Sum("run"), Read: read.read, Loop: loop.NewVirtual(time.Unix(0, 0))}, self: worldKey(3).Public()}
	h = &handler{node: n, Commitments: gossip.NewCommitments()}
	members := map[key.Public]coordinator.Member{}
	for i := range 4 {
		members[worldKey(i).Public()] = coordinator.Member(i)
	}
	h.SetMembers(members)
	h.Enter(10)
	return h, read
}

// gossips has member i send a commitment, and returns what the handler makes of it.
func gossips(h *handler, i int, c dispute.Commitment) p2p.Verdict {
	c.Run = h.node.cfg.ID
	author := worldKey(i).Public()
	return h.Gossip(author, c.Sign(worldKey(i)).Append(author[:]))
}

// A member signs commitments for rounds that never come, or are over, or of others. Nobody passes
// them on, and refusing them costs no signature check.
func TestCommitmentsThatCannotMatterAreNotPassedOn(t *testing.T) {
	h, read := listener()
	for i := range coordinator.Round(1000) {
		if got := gossips(h, 1, dispute.Commitment{Round: 1_000_000 + i, Member: 1}); got != p2p.Ignore {
			t.Fatalf("round %d: verdict %v", 1_000_000+i, got)
		}
	}
	for name, c := range map[string]dispute.Commitment{
		"none": {Round: 0, Member: 1}, "long over": {Round: 1, Member: 1}, "after the next": {Round: 12, Member: 1}, "another's": {Round: 10, Member: 2},
	} {
		if got := gossips(h, 1, c); got != p2p.Ignore {
			t.Errorf("%s: verdict %v", name, got)
		}
	}
	if read.verified() != 0 {
		t.Errorf("%d signatures were checked", read.verified())
	}
	for _, round := range []coordinator.Round{2, 10, 11} {
		if got := gossips(h, 1, dispute.Commitment{Round: round, Member: 1}); got != p2p.Accept {
			t.Errorf("round %d: verdict %v", round, got)
		}
	}
}

// A member signs many commitments for one round. Two prove what it is and travel on, so does one
// more; the rest is noise, and takes no room from others.
func TestOneMemberDoesNotFillARound(t *testing.T) {
	h, read := listener()
	for i := range uint32(1000) {
		want := p2p.Accept
		if i >= gossip.PerMemberMax {
			want = p2p.Ignore
		}
		if got := gossips(h, 1, dispute.Commitment{Round: 10, Member: 1, Loss: i}); got != want {
			t.Fatalf("commitment %d: verdict %v", i, got)
		}
	}
	if got := gossips(h, 2, dispute.Commitment{Round: 10, Member: 2}); got != p2p.Accept {
		t.Errorf("another's: verdict %v", got)
	}
	if kept := len(h.Of(10, 1)) + len(h.Of(10, 2)); kept != gossip.PerMemberMax+1 || read.verified() != kept {
		t.Errorf("%d are kept, %d signatures were checked", kept, read.verified())
	}
}
