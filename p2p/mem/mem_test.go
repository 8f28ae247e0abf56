package mem_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"testing"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/wire"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// network is a mesh of participants that log what happens to them.
type network struct {
	*mem.Mesh
	loop  *loop.Virtual
	log   hash.Hash
	peers []*participant
}

type participant struct {
	*mem.Peer
	*mem.Store
	net     *network
	key     key.Public
	got     map[string]int // gossip, by text
	verdict p2p.Verdict
}

func (p *participant) Gossip(from key.Public, data []byte) p2p.Verdict {
	p.got[string(data)]++
	fmt.Fprintf(p.net.log, "%v %v gossip %v %q\n", p.net.loop.Now(), p.key, from, data)
	return p.verdict
}

func (p *participant) Answer(from key.Public, request []byte) []byte {
	fmt.Fprintf(p.net.log, "%v %v ask %v %q\n", p.net.loop.Now(), p.key, from, request)
	if string(request) == "secret" {
		return nil
	}
	return append([]byte("re: "), request...)
}

// newNetwork makes n participants that know each other.
func newNetwork(n int, c mem.Config) *network {
	v := loop.NewVirtual(start)
	net := &network{Mesh: mem.NewMesh(v, c), loop: v, log: sha256.New()}
	for i := range n {
		net.join(key.FromSeed([32]byte{byte(i), 1}).Public())
	}
	net.introduce()
	return net
}

func (n *network) join(k key.Public) *participant {
	p := &participant{Store: mem.NewStore(64 << 20), net: n, key: k, got: map[string]int{}}
	p.Peer = n.Join(k, p)
	n.peers = append(n.peers, p)
	return p
}

func (n *network) introduce() {
	var all []p2p.Peer
	for _, p := range n.peers {
		all = append(all, p2p.Peer{Key: p.key, Addrs: p.Addrs()})
	}
	for _, p := range n.peers {
		p.Connect(all)
	}
}

func (n *network) run(d time.Duration) { n.loop.Run(n.loop.Now().Add(d)) }

func (n *network) keys(from, to int) []key.Public {
	var ks []key.Public
	for _, p := range n.peers[from:to] {
		ks = append(ks, p.key)
	}
	return ks
}

// fetch fetches to the end and reports how long it took.
func (n *network) fetch(t *testing.T, p *participant, f p2p.Fetch) ([]byte, time.Duration, error) {
	t.Helper()
	var b []byte
	var err error
	calls := 0
	began := n.loop.Now()
	p.Fetch(t.Context(), f, func(got []byte, e error) { b, err = got, e; calls++ })
	if calls != 0 {
		t.Error("done was called before Fetch returned")
	}
	for calls == 0 && n.loop.Step() {
	}
	took := n.loop.Now().Sub(began)
	n.run(time.Minute)
	if calls != 1 {
		t.Fatalf("done was called %d times", calls)
	}
	return b, took, err
}

func blob(n int, seed byte) []byte {
	b := make([]byte, n)
	x := uint64(seed) + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x >> 32)
	}
	return b
}

func put(t *testing.T, data []byte, ps ...*participant) p2p.Ref {
	t.Helper()
	var ref p2p.Ref
	for _, p := range ps {
		var err error
		if ref, err = p.Put(data); err != nil {
			t.Fatal(err)
		}
	}
	return ref
}

// history runs a busy network and returns the hash of everything that happened.
func history(t *testing.T, seed byte) string {
	n := newNetwork(12, mem.Config{
		Seed: wire.Hash{seed}, Fanout: 4,
		Link: mem.Link{Delay: 20 * time.Millisecond, Jitter: 30 * time.Millisecond, Loss: 0.2, BytesPerSecond: 5e6},
	})
	data := blob(5*merkle.ChunkBytes+9, 1)
	ref := put(t, data, n.peers[1], n.peers[2], n.peers[3])
	n.SetFaults(n.peers[2].key, mem.Faults{Corrupt: 0.5})
	for i, p := range n.peers {
		n.loop.After(time.Duration(i)*10*time.Millisecond, func() {
			p.Publish(fmt.Appendf(nil, "from %d", i))
			p.Ask(t.Context(), n.peers[(i+1)%12].key, []byte("hello"), func(b []byte, err error) {
				fmt.Fprintf(n.log, "%v answer %q %v\n", n.loop.Now(), b, err)
			})
			p.Fetch(t.Context(), p2p.Fetch{Ref: ref, From: n.keys(1, 4)}, func(b []byte, err error) {
				fmt.Fprintf(n.log, "%v blob %x %v\n", n.loop.Now(), sha256.Sum256(b), err)
			})
		})
	}
	n.loop.After(100*time.Millisecond, func() { n.Crash(n.peers[3].key) })
	n.loop.After(200*time.Millisecond, func() { n.Cut(n.keys(6, 9)) })
	n.loop.After(2*time.Second, n.Heal)
	n.run(2 * time.Minute)
	return hex.EncodeToString(n.log.Sum(nil))
}

func TestTheSameSeedGivesTheSameHistory(t *testing.T) {
	a, b, other := history(t, 1), history(t, 1), history(t, 2)
	if a != b {
		t.Errorf("one seed gave %s and %s", a, b)
	}
	if a == other {
		t.Error("the seed makes no difference")
	}
}

func TestGossipReachesAllOnceAndNotItsAuthor(t *testing.T) {
	n := newNetwork(20, mem.Config{Link: mem.Link{Delay: 50 * time.Millisecond}})
	n.run(0)
	if err := n.peers[0].Publish([]byte("hi")); err != nil {
		t.Fatal(err)
	}
	n.run(49 * time.Millisecond)
	if n.peers[1].got["hi"] != 0 {
		t.Error("the message arrived before its time")
	}
	n.run(time.Minute)
	for i, p := range n.peers {
		if want := min(i, 1); p.got["hi"] != want {
			t.Errorf("peer %d got the message %d times, want %d", i, p.got["hi"], want)
		}
	}
	if err := n.peers[0].Publish(make([]byte, p2p.MaxGossip+1)); !errors.Is(err, p2p.ErrTooLarge) {
		t.Errorf("an oversized message: %v", err)
	}
}

func TestLossIsAsOftenAsSaid(t *testing.T) {
	n := newNetwork(2, mem.Config{Link: mem.Link{Loss: 0.25}})
	for i := range 4000 {
		n.peers[0].Publish(fmt.Appendf(nil, "%d", i))
	}
	n.run(time.Second)
	if got := len(n.peers[1].got); got < 2850 || got > 3150 { // 3000, and 5.5 standard deviations
		t.Errorf("%d of 4000 messages arrived, want about 3000", got)
	}
}

func TestRelaysMakeUpForLossAndOnlyAcceptedGossipTravels(t *testing.T) {
	// 0 reaches the others only through 1.
	for _, v := range []p2p.Verdict{p2p.Accept, p2p.Ignore, p2p.Reject} {
		n := newNetwork(3, mem.Config{})
		lost := mem.Link{Loss: 1}
		n.SetLink(n.peers[0].key, n.peers[2].key, lost)
		n.peers[1].verdict = v
		n.peers[0].Publish([]byte("hi"))
		n.run(time.Second)
		if got, want := n.peers[2].got["hi"] == 1, v == p2p.Accept; got != want {
			t.Errorf("verdict %d: passed on is %v, want %v", v, got, want)
		}
	}
}

func TestWhoSendsWhatIsRejectedIsBannedForAWhile(t *testing.T) {
	n := newNetwork(2, mem.Config{})
	n.peers[1].verdict = p2p.Reject
	for i := range 100 {
		n.peers[0].Publish(fmt.Appendf(nil, "%d", i))
	}
	n.run(time.Second)
	if got := len(n.peers[1].got); got != 10 {
		t.Errorf("%d messages were looked at before the ban, want 10", got)
	}
	n.run(p2p.BanTime)
	n.peers[0].Publish([]byte("sorry"))
	n.run(time.Second)
	if n.peers[1].got["sorry"] != 1 {
		t.Error("the ban does not end")
	}
}

func TestAPartitionSeparatesAndHeals(t *testing.T) {
	n := newNetwork(6, mem.Config{Link: mem.Link{Delay: time.Millisecond}})
	data := blob(1000, 2)
	ref := put(t, data, n.peers[5])
	n.Cut(n.keys(0, 3))
	n.peers[0].Publish([]byte("cut"))
	var askErr error
	n.peers[0].Ask(t.Context(), n.peers[5].key, []byte("hello"), func(_ []byte, err error) { askErr = err })
	n.run(time.Minute)
	for i, p := range n.peers {
		if got, want := p.got["cut"] == 1, i == 1 || i == 2; got != want {
			t.Errorf("peer %d: got the message is %v, want %v", i, got, want)
		}
	}
	if !errors.Is(askErr, p2p.ErrStalled) {
		t.Errorf("across the cut: %v", askErr)
	}
	if _, _, err := n.fetch(t, n.peers[0], p2p.Fetch{Ref: ref, From: n.keys(5, 6)}); !errors.Is(err, p2p.ErrNoPeers) {
		t.Errorf("across the cut: %v", err)
	}
	n.Heal()
	n.peers[0].Publish([]byte("whole"))
	if b, _, err := n.fetch(t, n.peers[0], p2p.Fetch{Ref: ref, From: n.keys(5, 6)}); err != nil || !bytes.Equal(b, data) {
		t.Errorf("after healing: %v", err)
	}
	for i, p := range n.peers[1:] {
		if p.got["whole"] != 1 {
			t.Errorf("peer %d did not get the message after healing", i+1)
		}
	}
}

func TestAskIsAnsweredRefusedOrTimedOut(t *testing.T) {
	n := newNetwork(3, mem.Config{Link: mem.Link{Delay: 10 * time.Millisecond}})
	stranger := key.Public{9}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	n.SetFaults(n.peers[2].key, mem.Faults{Silent: true})
	for _, c := range []struct {
		ctx     context.Context
		to      key.Public
		request string
		answer  string
		err     error
	}{
		{t.Context(), n.peers[1].key, "hello", "re: hello", nil},
		{t.Context(), n.peers[1].key, "secret", "", p2p.ErrRefused},
		{t.Context(), n.peers[1].key, string(make([]byte, p2p.MaxRequest+1)), "", p2p.ErrTooLarge},
		{t.Context(), n.peers[2].key, "hello", "", p2p.ErrStalled},
		{t.Context(), stranger, "hello", "", p2p.ErrUnknownPeer},
		{canceled, n.peers[1].key, "hello", "", context.Canceled},
	} {
		calls := 0
		n.peers[0].Ask(c.ctx, c.to, []byte(c.request), func(b []byte, err error) {
			calls++
			if string(b) != c.answer || !errors.Is(err, c.err) {
				t.Errorf("%.9q: got %q, %v, want %q, %v", c.request, b, err, c.answer, c.err)
			}
		})
		n.run(time.Minute)
		if calls != 1 {
			t.Errorf("%.9q: done was called %d times", c.request, calls)
		}
	}
}

func TestOnlyNamedPeersConnect(t *testing.T) {
	n := newNetwork(2, mem.Config{})
	stranger := n.join(key.Public{7})
	stranger.Connect([]p2p.Peer{{Key: n.peers[0].key, Addrs: n.peers[0].Addrs()}})
	stranger.Publish([]byte("let me in"))
	n.run(time.Second)
	if n.peers[0].got["let me in"] != 0 {
		t.Error("a stranger's message was heard")
	}
	// Allowed, and it is enough that one of the two knows an address.
	n.peers[0].Connect([]p2p.Peer{{Key: stranger.key}})
	stranger.Publish([]byte("thanks"))
	n.run(time.Second)
	if n.peers[0].got["thanks"] != 1 {
		t.Error("an allowed peer's message was not heard")
	}
}

func TestAFetchOutlivesLiarsCrashesAndSilence(t *testing.T) {
	n := newNetwork(5, mem.Config{Link: mem.Link{Delay: 20 * time.Millisecond, BytesPerSecond: 10e6}})
	data := blob(40*merkle.ChunkBytes+1, 3)
	ref := put(t, data, n.peers[1:]...)
	n.SetFaults(n.peers[1].key, mem.Faults{Corrupt: 1})
	n.SetFaults(n.peers[2].key, mem.Faults{Silent: true})
	n.loop.After(300*time.Millisecond, func() { n.Crash(n.peers[3].key) })
	blamed := map[key.Public]p2p.Offence{}
	b, _, err := n.fetch(t, n.peers[0], p2p.Fetch{
		Ref: ref, From: n.keys(1, 5),
		Penalty: func(k key.Public, o p2p.Offence) { blamed[k] = o },
	})
	if err != nil || !bytes.Equal(b, data) {
		t.Fatal(err)
	}
	if o, ok := blamed[n.peers[1].key]; !ok || o != p2p.Lied {
		t.Errorf("the liar is blamed: %v, %v", ok, o)
	}
	if _, ok := blamed[n.peers[4].key]; ok {
		t.Error("the honest peer is blamed")
	}
}

func TestPeersShareTheWork(t *testing.T) {
	// Four links of 1 MB/s bring 16 MiB in about 4.2 s; a slow fifth one, which
	// would need 168 s alone, does not hold them up.
	n := newNetwork(6, mem.Config{Link: mem.Link{Delay: 20 * time.Millisecond, BytesPerSecond: 1e6}})
	n.SetLink(n.peers[5].key, n.peers[0].key, mem.Link{BytesPerSecond: 1e5})
	data := blob(64*merkle.ChunkBytes, 4)
	ref := put(t, data, n.peers[1:]...)
	b, took, err := n.fetch(t, n.peers[0], p2p.Fetch{Ref: ref, From: n.keys(1, 6)})
	if err != nil || !bytes.Equal(b, data) {
		t.Fatal(err)
	}
	if took > 7*time.Second { // virtual time
		t.Errorf("the fetch took %v", took)
	}
}

func TestClosingEndsRequests(t *testing.T) {
	n := newNetwork(2, mem.Config{Link: mem.Link{Delay: time.Second}})
	p := n.peers[0]
	data := blob(1000, 5)
	ref := put(t, data, n.peers[1])
	var errs []error
	p.Ask(t.Context(), n.peers[1].key, []byte("hello"), func(_ []byte, err error) { errs = append(errs, err) })
	p.Fetch(t.Context(), p2p.Fetch{Ref: ref, From: n.keys(1, 2)}, func(_ []byte, err error) { errs = append(errs, err) })
	n.run(time.Millisecond)
	p.Close()
	p.Close()
	n.run(0)
	if len(errs) != 2 || !errors.Is(errs[0], p2p.ErrClosed) || !errors.Is(errs[1], p2p.ErrClosed) {
		t.Fatalf("requests ended with %v", errs)
	}
	p.Ask(t.Context(), n.peers[1].key, nil, func(_ []byte, err error) { errs = append(errs, err) })
	p.Fetch(t.Context(), p2p.Fetch{Ref: ref}, func(_ []byte, err error) { errs = append(errs, err) })
	n.run(time.Hour)
	if len(errs) != 4 || !errors.Is(errs[2], p2p.ErrClosed) || !errors.Is(errs[3], p2p.ErrClosed) {
		t.Errorf("requests after closing ended with %v", errs)
	}
	if err := p.Publish([]byte("hi")); !errors.Is(err, p2p.ErrClosed) {
		t.Errorf("publishing after closing: %v", err)
	}
}

func TestACrashedPeerHearsNothingAndMayComeBack(t *testing.T) {
	n := newNetwork(2, mem.Config{Link: mem.Link{Delay: time.Second}})
	old := n.peers[0]
	fail := func(_ []byte, err error) { t.Errorf("a crashed peer heard %v", err) }
	old.Ask(t.Context(), n.peers[1].key, []byte("hello"), fail)
	old.Fetch(t.Context(), p2p.Fetch{From: n.keys(1, 2)}, fail)
	n.run(time.Millisecond)
	n.Crash(old.key)
	n.peers[0] = n.join(old.key)
	n.introduce()
	n.run(time.Hour)
	n.peers[0].Publish([]byte("back"))
	n.peers[1].Publish([]byte("welcome"))
	n.run(time.Minute)
	if n.peers[1].got["back"] != 1 || n.peers[0].got["welcome"] != 1 || old.got["welcome"] != 0 {
		t.Error("the peer did not come back")
	}
}

func TestAMeshOnTheWallClock(t *testing.T) {
	real := loop.NewReal()
	m := mem.NewMesh(real, mem.Config{Open: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := &network{log: sha256.New(), loop: loop.NewVirtual(start)}
	var ps []*participant
	for i := range 2 {
		p := &participant{Store: mem.NewStore(1 << 20), net: n, key: key.Public{byte(i + 1)}, got: map[string]int{}}
		p.Peer = m.Join(p.key, p)
		ps = append(ps, p)
	}
	data := blob(300_000, 6)
	ref := put(t, data, ps[1])
	ps[0].Connect([]p2p.Peer{{Key: ps[1].key, Addrs: ps[1].Addrs()}})
	var got []byte
	go ps[0].Fetch(ctx, p2p.Fetch{Ref: ref, From: []key.Public{ps[1].key}}, func(b []byte, err error) {
		if err != nil {
			t.Error(err)
		}
		got = b
		cancel()
	})
	real.Run(ctx)
	if !bytes.Equal(got, data) {
		t.Error("the blob did not arrive")
	}
}
