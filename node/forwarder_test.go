package node

import (
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// A relay passes on what members have signed about rounds of now, and nothing else.
func TestAForwarderPassesOnWhatMembersSign(t *testing.T) {
	w := newLargeWorld(t, 20, 2)
	w.start(0)
	w.start(1)
	w.until(time.Minute, func() bool { return w.state().Step() >= 2 })
	state, member := w.state(), w.key(1)
	i, ok := state.Find(member.Public())
	if !ok {
		t.Fatal("not a member")
	}
	f := gossip.NewForwarder(state.ID())
	said := func(by key.Private, change func(*dispute.Commitment)) p2p.Verdict {
		c := dispute.Commitment{Run: state.ID(), Epoch: 1, Round: state.Round(), Member: i}
		change(&c)
		author := by.Public()
		return f.Gossip(author, c.Sign(by).Append(append([]byte(nil), author[:]...)))
	}
	same := func(*dispute.Commitment) {}
	if got := said(member, same); got != p2p.Ignore {
		t.Errorf("before it knows members: %v", got)
	}
	f.Follow(state)
	stranger := key.FromSeed([32]byte{77})
	for name, c := range map[string]struct{ got, want p2p.Verdict }{
		"a member's":            {said(member, same), p2p.Accept},
		"a stranger's":          {said(stranger, same), p2p.Ignore},
		"under another's index": {said(w.key(0), same), p2p.Ignore},
		"of a far round":        {said(member, func(c *dispute.Commitment) { c.Round += 1000 }), p2p.Ignore},
		"of another run":        {said(member, func(c *dispute.Commitment) { c.Run = wire.Hash{9} }), p2p.Reject},
		"noise":                 {f.Gossip(member.Public(), []byte("noise")), p2p.Reject},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	for i := range uint32(10) {
		want := p2p.Accept
		if i >= gossip.PerMemberMax-1 { // one has passed above
			want = p2p.Ignore
		}
		if got := said(member, func(c *dispute.Commitment) { c.Loss = i + 1 }); got != want {
			t.Errorf("commitment %d to one round: %v", i, got)
		}
	}
	if got := said(member, same); got != p2p.Accept {
		t.Errorf("one that was passed on is not passed on again: %v", got)
	}
	if f.Answer(member.Public(), []byte{1}) != nil {
		t.Error("a forwarder has nothing to answer")
	}
}
