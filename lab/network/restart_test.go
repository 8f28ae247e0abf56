package network

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/lp2p"
	"github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/wire"
)

// A member that is killed and starts again hears the others within two seconds, and they hear it,
// even if nothing tells them that its old connections ended.
func TestAMemberThatStartsAgainIsHeardAtOnce(t *testing.T) {
	for _, silent := range []bool{false, true} {
		for _, ran := range []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, time.Minute} {
			for _, away := range []time.Duration{0, 4 * time.Second} {
				for _, keys := range [][2]byte{{0, 1}, {1, 0}} { // who dials first depends on them
					t.Run(fmt.Sprintf("silently=%v/ran=%v/away=%v/key=%d", silent, ran, away, keys[0]), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { startAgain(t, silent, ran, away, keys) })
					})
				}
			}
		}
	}
}

func startAgain(t *testing.T, silent bool, ran, away time.Duration, keys [2]byte) {
	s := newStreams(25 * time.Millisecond)
	defer s.open.Wait()
	stays, killed := newTalker(t, s, keys[1], 1), newTalker(t, s, keys[0], 2)
	defer stays.Close()
	meet(stays, killed)
	time.Sleep(ran)
	if silent {
		s.lose()
	}
	killed.Close()
	time.Sleep(away)

	back := newTalker(t, s, keys[0], 3) // ports change
	defer back.Close()
	meet(stays, back)
	for range 19 { // within two seconds
		time.Sleep(100 * time.Millisecond)
		stays.say(t, "a result")
		back.say(t, "another result")
	}
	synctest.Wait()
	if !back.heard.Load() || !stays.heard.Load() {
		t.Errorf("it hears the other: %v, and the other hears it: %v", back.heard.Load(), stays.heard.Load())
	}
}

// talker is a member that accepts all gossip.
type talker struct {
	*lp2p.Network
	*mem.Store
	heard atomic.Bool // something
}

func newTalker(t *testing.T, s *streams, seed byte, port int) *talker {
	t.Helper()
	m := &talker{Store: mem.NewStore(0)}
	n, err := lp2p.New(lp2p.Options{
		Key: key.FromSeed([32]byte{seed}), Run: wire.Hash{1}, Handler: m, Open: true,
		Streams: s, Listen: []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port)},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Network = n
	return m
}

// meet has two members know each other's addresses.
func meet(a, b *talker) {
	peers := []p2p.Peer{{Key: a.Self(), Addrs: a.Addrs()}, {Key: b.Self(), Addrs: b.Addrs()}}
	a.Connect(peers)
	b.Connect(peers)
}

func (m *talker) say(t *testing.T, text string) {
	t.Helper()
	if err := m.Publish([]byte(text)); err != nil {
		t.Error(err)
	}
}

// Gossip implements p2p.Handler.
func (m *talker) Gossip(key.Public, []byte) p2p.Verdict {
	m.heard.Store(true)
	return p2p.Accept
}

// Answer implements p2p.Handler.
func (m *talker) Answer(key.Public, []byte) []byte { return nil }
