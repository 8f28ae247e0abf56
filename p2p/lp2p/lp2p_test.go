package lp2p

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/mem"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/wire"
)

func TestMain(m *testing.M) {
	// Tests that run in parallel wait for peers more than they compute.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var run = wire.Sum("test", []byte("run"))

func secret(i int) key.Private { return key.FromSeed([32]byte{byte(i), byte(i >> 8), 7}) }

// participant is a handler that remembers, and its network.
type participant struct {
	*Network
	*mem.Store

	gotMu   sync.Mutex
	got     map[string]int
	verdict p2p.Verdict
	answers chan struct{} // if not nil, Answer waits for a token
	corrupt bool
	chunks  int    // served
	onChunk func() // called before each chunk is served
}

func (p *participant) Gossip(from key.Public, data []byte) p2p.Verdict {
	p.gotMu.Lock()
	defer p.gotMu.Unlock()
	p.got[fmt.Sprintf("%x: %s", from[:2], data)]++
	return p.verdict
}

func (p *participant) count(from *participant, text string) int {
	p.gotMu.Lock()
	defer p.gotMu.Unlock()
	self := from.Self()
	return p.got[fmt.Sprintf("%x: %s", self[:2], text)]
}

func (p *participant) Answer(from key.Public, request []byte) []byte {
	if p.answers != nil {
		<-p.answers
	}
	if string(request) == "secret" {
		return nil
	}
	return append([]byte("re: "), request...)
}

func (p *participant) Chunk(root wire.Hash, i uint32) ([]byte, bool) {
	p.gotMu.Lock()
	p.chunks++
	f := p.onChunk
	p.gotMu.Unlock()
	if f != nil {
		f()
	}
	b, ok := p.Store.Chunk(root, i)
	if p.corrupt {
		b = bytes.Clone(b)
		b[len(b)/2] ^= 1
	}
	return b, ok
}

func (p *participant) served() int {
	p.gotMu.Lock()
	defer p.gotMu.Unlock()
	return p.chunks
}

func (p *participant) peer() p2p.Peer { return p2p.Peer{Key: p.Self(), Addrs: p.Addrs()} }

var (
	loopbackTCP  = "/ip4/127.0.0.1/tcp/0"
	loopbackQUIC = "/ip4/127.0.0.1/udp/0/quic-v1"
)

// begin starts a participant that ends with the test.
func begin(t testing.TB, i int, change func(*Options)) *participant {
	t.Helper()
	return beginWith(t, i, times{late: lateAfter, stall: stallAfter, join: joinPatience}, change)
}

func beginWith(t testing.TB, i int, x times, change func(*Options)) *participant {
	t.Helper()
	p := &participant{Store: mem.NewStore(256 << 20), got: map[string]int{}}
	o := Options{Key: secret(i), Run: run, Handler: p, Listen: []string{loopbackTCP, loopbackQUIC}}
	if change != nil {
		change(&o)
	}
	n, err := newNetwork(o, x)
	if err != nil {
		t.Fatal(err)
	}
	p.Network = n
	t.Cleanup(func() { n.Close() })
	return p
}

// together starts n participants and connects each with each.
func together(t testing.TB, n int, change func(*Options)) []*participant {
	t.Helper()
	var ps []*participant
	for i := range n {
		ps = append(ps, begin(t, i, change))
	}
	introduce(ps)
	for _, p := range ps {
		eventually(t, func() bool { return len(p.topic.ListPeers()) == n-1 })
	}
	return ps
}

func introduce(ps []*participant) {
	var peers []p2p.Peer
	for _, p := range ps {
		peers = append(peers, p.peer())
	}
	for _, p := range ps { // all allow all before anybody dials
		for _, q := range ps {
			p.gate.allow(q.Self())
		}
	}
	for _, p := range ps {
		p.Connect(peers)
	}
}

// eventually waits until a condition holds, as long as a busy machine may take.
func eventually(t testing.TB, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	patience := time.NewTimer(20 * time.Second)
	defer patience.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-patience.C:
			t.Fatal("what should have happened did not")
		}
	}
}

func ask(t testing.TB, p *participant, to key.Public, request []byte) ([]byte, error) {
	t.Helper()
	return wait(t, func(done func([]byte, error)) { p.Ask(t.Context(), to, request, done) })
}

func fetch(t testing.TB, p *participant, f p2p.Fetch) ([]byte, error) {
	t.Helper()
	return wait(t, func(done func([]byte, error)) { p.Fetch(t.Context(), f, done) })
}

func wait(t testing.TB, begin func(done func([]byte, error))) ([]byte, error) {
	t.Helper()
	type result struct {
		b   []byte
		err error
	}
	results := make(chan result, 2)
	begin(func(b []byte, err error) { results <- result{b, err} })
	r := <-results
	return r.b, r.err
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

func put(t testing.TB, data []byte, ps ...*participant) p2p.Ref {
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

func TestIdentityOnTheWireIsTheKeyOnTheChain(t *testing.T) {
	for i := range 20 {
		k := secret(i).Public()
		id, err := peerID(k)
		if err != nil {
			t.Fatal(err)
		}
		sk, err := privateKey(secret(i))
		if err != nil {
			t.Fatal(err)
		}
		if !id.MatchesPrivateKey(sk) {
			t.Errorf("%v is not the identity of its own secret", id)
		}
		if back, err := publicKey(id); err != nil || back != k {
			t.Errorf("key %v became %v, %v", k, back, err)
		}
	}
	if _, err := publicKey("Qm rubbish"); err == nil {
		t.Error("rubbish has a key")
	}
}

func TestGossipReachesAll(t *testing.T) {
	t.Parallel()
	ps := together(t, 8, nil)
	for i, p := range ps {
		if err := p.Publish(fmt.Appendf(nil, "from %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, from := range ps {
		for _, p := range ps {
			if p != from {
				eventually(t, func() bool { return p.count(from, fmt.Sprintf("from %d", i)) == 1 })
			}
		}
		if n := from.count(from, fmt.Sprintf("from %d", i)); n != 0 {
			t.Errorf("participant %d heard itself", i)
		}
	}
	if err := ps[0].Publish(make([]byte, p2p.MaxGossip)); err != nil {
		t.Errorf("the largest message: %v", err)
	}
	for _, n := range []int{0, p2p.MaxGossip + 1} {
		if err := ps[0].Publish(make([]byte, n)); !errors.Is(err, p2p.ErrTooLarge) {
			t.Errorf("a message of %d bytes: %v", n, err)
		}
	}
}

func TestGossipTravelsThroughOthers(t *testing.T) {
	a, b, c := begin(t, 0, nil), begin(t, 1, nil), begin(t, 2, nil)
	// A and C allow each other, but know no address.
	a.Connect([]p2p.Peer{b.peer(), {Key: c.Self()}})
	b.Connect([]p2p.Peer{a.peer(), c.peer()})
	c.Connect([]p2p.Peer{b.peer(), {Key: a.Self()}})
	eventually(t, func() bool { return len(b.topic.ListPeers()) == 2 })
	eventually(t, func() bool {
		if err := a.Publish([]byte("hi")); err != nil {
			t.Fatal(err)
		}
		return c.count(a, "hi") > 0
	})
}

func TestQuestionsAreAnswered(t *testing.T) {
	ps := together(t, 3, nil)
	largest := bytes.Repeat([]byte("x"), p2p.MaxRequest)
	for _, q := range [][]byte{[]byte("hello"), {}, largest} {
		got, err := ask(t, ps[0], ps[1].Self(), q)
		if err != nil || !bytes.Equal(got, append([]byte("re: "), q...)) {
			t.Errorf("a question of %d bytes: got %.20q, %v", len(q), got, err)
		}
	}
	if _, err := ask(t, ps[0], ps[1].Self(), []byte("secret")); !errors.Is(err, p2p.ErrRefused) {
		t.Errorf("a question nobody answers: %v", err)
	}
	if _, err := ask(t, ps[0], ps[1].Self(), append(largest, 'x')); !errors.Is(err, p2p.ErrTooLarge) {
		t.Errorf("a question beyond the limit: %v", err)
	}
	if _, err := ask(t, ps[0], secret(99).Public(), nil); !errors.Is(err, p2p.ErrUnknownPeer) {
		t.Errorf("a question to a stranger: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := wait(t, func(done func([]byte, error)) { ps[0].Ask(canceled, ps[1].Self(), nil, done) }); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled question: %v", err)
	}
}

func TestUnknownKeysAreRefusedUnlessTheRunIsOpen(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		for _, listen := range []string{loopbackTCP, loopbackQUIC} {
			a := begin(t, 0, func(o *Options) { o.Open, o.Listen = open, []string{listen} })
			stranger := begin(t, 1, func(o *Options) { o.Listen = []string{listen} })
			stranger.Connect([]p2p.Peer{a.peer()})
			got, err := ask(t, stranger, a.Self(), []byte("hello"))
			if open && (err != nil || string(got) != "re: hello") || !open && err == nil {
				t.Errorf("%s, open is %v: the stranger got %q, %v", listen, open, got, err)
			}
			if !open { // until it is named
				a.Connect([]p2p.Peer{{Key: stranger.Self()}})
				eventually(t, func() bool {
					got, err := ask(t, stranger, a.Self(), []byte("hello"))
					return err == nil && string(got) == "re: hello"
				})
			}
			a.Close()
			stranger.Close()
		}
	}
}

func TestPeersOfAnotherRunAreToldSo(t *testing.T) {
	a := begin(t, 0, nil)
	b := begin(t, 1, func(o *Options) { o.Run = wire.Hash{1} })
	introduce([]*participant{a, b})
	ref := put(t, []byte("data"), b)
	if _, err := ask(t, a, b.Self(), []byte("hello")); !errors.Is(err, p2p.ErrOtherRun) {
		t.Errorf("ask: %v", err)
	}
	if _, err := fetch(t, a, p2p.Fetch{Ref: ref, From: []key.Public{b.Self()}}); !errors.Is(err, p2p.ErrOtherRun) {
		t.Errorf("fetch: %v", err)
	}
}

func TestConnectingIsTriedUntilThePeerIsThere(t *testing.T) {
	t.Parallel()
	a := begin(t, 0, nil)
	b := begin(t, 1, func(o *Options) { o.Listen = []string{loopbackTCP} })
	peer := b.peer()
	b.Close()
	a.Connect([]p2p.Peer{peer})
	eventually(t, func() bool { // it has failed at least once
		a.members.listMu.Lock()
		defer a.members.listMu.Unlock()
		return a.members.list[0].attempts > 0
	})
	tcp, _, _ := strings.Cut(peer.Addrs[0], "/p2p/")
	again := begin(t, 1, func(o *Options) { o.Listen = []string{tcp} })
	again.Connect([]p2p.Peer{{Key: a.Self()}})
	eventually(t, func() bool { return len(again.topic.ListPeers()) == 1 })
}

func TestBadOptionsSayWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	other := begin(t, 1, nil)
	h := &participant{}
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"no key":       {Options{Handler: h}, "key"},
		"no handler":   {Options{Key: secret(0)}, "handler"},
		"rubbish":      {Options{Key: secret(0), Handler: h, Listen: []string{"localhost:4001"}}, `"localhost:4001"`},
		"tcp in use":   {Options{Key: secret(0), Handler: h, Listen: []string{loopbackQUIC, fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port)}}, "address already in use"},
		"udp in use":   {Options{Key: secret(0), Handler: h, Listen: []string{loopbackTCP, fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", u.LocalAddr().(*net.UDPAddr).Port)}}, "address already in use"},
		"ours in use":  {Options{Key: secret(0), Handler: h, Listen: []string{strings.Split(other.Addrs()[0], "/p2p/")[0]}}, "address already in use"},
		"relay":        {Options{Key: secret(0), Handler: h, Relays: []string{"/ip4/192.0.2.1/tcp/1"}}, "relay"},
		"no transport": {Options{Key: secret(0), Handler: h, Listen: []string{"/ip4/127.0.0.1/udp/0"}}, "listen on /ip4/127.0.0.1/udp/0"},
	} {
		n, err := New(c.o)
		if err == nil {
			n.Close()
			t.Errorf("%s: no error", name)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q does not say %q", name, err, c.want)
		}
	}
}

func TestAddressesAreUsableAndNotLoopbackUnlessAsked(t *testing.T) {
	a := begin(t, 0, func(o *Options) { o.Listen = nil })
	for _, s := range a.Addrs() {
		if strings.HasPrefix(s, "/ip4/127.") || strings.HasPrefix(s, "/ip6/::1/") {
			t.Errorf("told others %s", s)
		}
	}
	b := begin(t, 1, nil)
	id, _ := peerID(b.Self())
	if len(b.Addrs()) != 2 {
		t.Errorf("addresses: %v", b.Addrs())
	}
	for _, s := range b.Addrs() {
		if _, err := parseAddr(s, id); err != nil {
			t.Error(err)
		}
		if strings.Contains(s, "/0/") {
			t.Errorf("%s names no port", s)
		}
	}
	otherID, _ := peerID(a.Self())
	for _, bad := range []string{"", "rubbish", b.Addrs()[0], "/p2p/" + otherID.String(), strings.Repeat("/ip4/1.2.3.4", 100)} {
		if _, err := parseAddr(bad, otherID); err == nil {
			t.Errorf("%.40q is taken for an address", bad)
		}
	}
}

func TestCloseEndsRequests(t *testing.T) {
	ps := together(t, 2, nil)
	answers := make(chan struct{})
	ps[1].answers = answers
	ps[1].onChunk = func() { <-answers }
	ref := put(t, blob(1000, 4), ps[1])
	results := make(chan error, 4)
	done := func(_ []byte, err error) { results <- err }
	ps[0].Ask(t.Context(), ps[1].Self(), []byte("hello"), done)
	ps[0].Fetch(t.Context(), p2p.Fetch{Ref: ref, From: []key.Public{ps[1].Self()}}, done)
	eventually(t, func() bool { return ps[1].served() > 0 })
	if err := ps[0].Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	ps[0].Ask(t.Context(), ps[1].Self(), []byte("hello"), done)
	ps[0].Fetch(t.Context(), p2p.Fetch{Ref: ref, From: []key.Public{ps[1].Self()}}, done)
	for range 4 {
		if err := <-results; !errors.Is(err, p2p.ErrClosed) {
			t.Errorf("a request ended with %v", err)
		}
	}
	if err := ps[0].Publish([]byte("hi")); !errors.Is(err, p2p.ErrClosed) {
		t.Errorf("publishing: %v", err)
	}
	close(answers)
}
