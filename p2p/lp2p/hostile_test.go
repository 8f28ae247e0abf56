package lp2p

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/multiformats/go-varint"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// enemy is a member that keeps to no rule: a bare libp2p host with a member's key.
func enemy(t testing.TB, i int, victims ...*participant) host.Host {
	t.Helper()
	sk, err := privateKey(secret(i))
	if err != nil {
		t.Fatal(err)
	}
	h, err := libp2p.New(libp2p.Identity(sk), libp2p.Transport(tcp.NewTCPTransport),
		libp2p.ListenAddrStrings(loopbackTCP), libp2p.DisableRelay(), libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	for _, v := range victims {
		v.gate.allow(secret(i).Public())
		if err := h.Connect(t.Context(), peer.AddrInfo{ID: v.host.ID(), Addrs: v.host.Addrs()}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// say writes bytes to a protocol of the victim, ends the stream and reads what comes.
func say(t testing.TB, h host.Host, v *participant, p protocol.ID, b []byte) []byte {
	t.Helper()
	s, err := h.NewStream(t.Context(), v.host.ID(), p)
	if err != nil {
		return nil // banned by now
	}
	defer s.Reset()
	s.SetDeadline(time.Now().Add(10 * time.Second)) // so that a fault of the victim fails the test
	s.Write(b)
	s.CloseWrite()
	answer, _ := io.ReadAll(s) // the victim may cut the stream
	return answer
}

func TestRubbishOnTheStreamsHarmsNobodyAndIsBanned(t *testing.T) {
	ps := together(t, 2, nil)
	h := enemy(t, 10, ps[0])
	ref := put(t, []byte("data"), ps[0])
	for _, p := range []protocol.ID{blobProtocol, askProtocol} {
		for _, b := range [][]byte{nil, {1}, []byte("GET / HTTP/1.1\r\n\r\n"), bytes.Repeat([]byte{0xff}, 30)} {
			if got := say(t, h, ps[0], p, b); len(got) != 0 {
				t.Errorf("%s: %.20q was answered with %.20q", p, b, got)
			}
		}
	}
	tooLong := append(run[:], 0xff, 0xff, 0xff, 0xff)
	if got := say(t, h, ps[0], askProtocol, tooLong); len(got) != 0 {
		t.Errorf("a question of 4 GiB was answered with %x", got)
	}
	q := p2p.Query{Run: run, Ref: ref, Count: 1}
	if got := say(t, h, ps[0], blobProtocol, q.Append(nil)); !bytes.Equal(got, []byte("\x00\x04\x00\x00\x00data")) {
		t.Errorf("a good request was answered with %q", got)
	}
	q.Count = 1 << 31
	if got := say(t, h, ps[0], blobProtocol, q.Append(nil)); len(got) != 0 {
		t.Errorf("a request of 2^31 chunks was answered with %x", got)
	}
	if got := say(t, h, ps[0], blobProtocol, bytes.Repeat([]byte{0xff}, 1<<20)); len(got) != 0 {
		t.Errorf("a megabyte of rubbish was answered with %x", got)
	}
	eventually(t, func() bool {
		say(t, h, ps[0], askProtocol, tooLong)
		return !ps[0].gate.allows(secret(10).Public())
	})
	eventually(t, func() bool { return h.Network().Connectedness(ps[0].host.ID()) != network.Connected })
	if got, err := ask(t, ps[1], ps[0].Self(), []byte("hello")); err != nil || string(got) != "re: hello" {
		t.Errorf("an honest peer got %q, %v", got, err)
	}
}

func TestAFloodOfRequestsIsBanned(t *testing.T) {
	ps := together(t, 2, nil)
	h := enemy(t, 11, ps[0])
	// More at once than anybody is served: streams on which no request comes.
	streams := 0
	for ps[0].gate.allows(secret(11).Public()) {
		if streams > streamsMax {
			t.Fatal("a flood is borne without end")
		}
		s, err := h.NewStream(t.Context(), ps[0].host.ID(), askProtocol)
		if err != nil {
			break // banned, or beyond the streams of one peer
		}
		defer s.Reset()
		s.Write([]byte{1})
		streams++
	}
	eventually(t, func() bool { return !ps[0].gate.allows(secret(11).Public()) })
	if streams < servedPerPeer {
		t.Errorf("banned after %d streams, and %d are served at once", streams, servedPerPeer)
	}
	if _, err := ask(t, ps[1], ps[0].Self(), []byte("hello")); err != nil {
		t.Errorf("an honest peer: %v", err)
	}
}

func TestWhoAsksOftenWaitsButIsNotBlamed(t *testing.T) {
	t.Parallel()
	var g guests
	k, now := secret(1).Public(), time.Now()
	for i := range requestsBurst + requestsPerSecond/2 {
		a, wait := g.enter(k, now)
		if a != admitted || (wait > 0) != (i >= requestsBurst) {
			t.Fatalf("request %d: %v, after %v", i, a, wait)
		}
		g.leave(k)
	}
	if _, wait := g.enter(k, now); wait < 500*time.Millisecond || wait > 510*time.Millisecond {
		t.Errorf("the next waits for %v, want half a second", wait)
	}
	if _, wait := g.enter(k, now.Add(time.Minute)); wait != 0 {
		t.Errorf("a minute later it waits for %v", wait)
	}
	for range servedPerPeer - 2 {
		g.enter(k, now.Add(time.Minute))
	}
	if a, _ := g.enter(k, now.Add(time.Minute)); a != flooding {
		t.Errorf("one more than %d at once: %v", servedPerPeer, a)
	}
	for i := range guestsMax + 10 { // those with nothing to remember are forgotten
		other := secret(2).Public()
		other[0], other[1] = byte(i), byte(i>>8)
		if a, _ := g.enter(other, now.Add(time.Duration(i)*time.Minute)); a != admitted {
			t.Fatalf("stranger %d: %v", i, a)
		}
		g.leave(other)
	}
}

// Strangers that begin requests and do not end them leave places to members.
func TestStrangersLeavePlacesToMembers(t *testing.T) {
	var g guests
	member, stranger := secret(1).Public(), secret(2).Public()
	g.member = func(k key.Public) bool { return k == member }
	served := 0
	for i := range 2 * servedMax / servedPerPeer {
		stranger[0] = byte(i)
		for range servedPerPeer {
			if a, _ := g.enter(stranger, time.Now()); a == admitted {
				served++
			}
		}
	}
	if served != servedMax/strangersPart {
		t.Errorf("strangers hold %d places", served)
	}
	for range servedPerPeer {
		if a, _ := g.enter(member, time.Now()); a != admitted {
			t.Fatalf("a member is told %v", a)
		}
	}
	g.member = nil // so that strangers become members between their coming and going
	for i := range served / servedPerPeer {
		stranger[0] = byte(i)
		for range servedPerPeer {
			g.leave(stranger)
		}
	}
	if g.strangers != 0 || g.serving != servedPerPeer {
		t.Errorf("%d strangers of %d are served after they left", g.strangers, g.serving)
	}
}

func TestAnswersThatAreNoneAreErrors(t *testing.T) {
	a := begin(t, 0, nil)
	h := enemy(t, 12, a)
	for name, c := range map[string]struct {
		answer []byte
		want   error
	}{
		"nothing":        {nil, io.ErrUnexpectedEOF},
		"unknown status": {[]byte{77}, p2p.ErrMalformed},
		"too long":       {[]byte{0, 1, 0, 16, 0}, p2p.ErrMalformed},
		"cut short":      {[]byte{0, 9, 0, 0, 0, 'x'}, io.ErrUnexpectedEOF},
		"busy":           {[]byte{byte(p2p.StatusBusy)}, p2p.ErrBusy},
	} {
		h.SetStreamHandler(askProtocol, func(s network.Stream) {
			io.ReadAll(s)
			s.Write(c.answer)
			s.Close()
		})
		if _, err := ask(t, a, secret(12).Public(), []byte("hello")); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

// forged is gossip in another's name, with a signature that is not theirs.
func forged(topic string, author peer.ID, signature []byte) []byte {
	rpc := &pb.RPC{Publish: []*pb.Message{{
		From: []byte(author), Data: []byte("forged"), Seqno: []byte{1, 2, 3, 4, 5, 6, 7, 8},
		Topic: &topic, Signature: signature,
	}}}
	b, err := rpc.Marshal()
	if err != nil {
		panic(err)
	}
	return append(varint.ToUvarint(uint64(len(b))), b...)
}

func TestForgedAndRubbishGossipHarmsNobodyAndIsBanned(t *testing.T) {
	ps := together(t, 3, nil)
	topic := topicName(run)
	author := ps[1].host.ID()
	for i, frame := range map[int][]byte{
		20: forged(topic, author, make([]byte, 64)), // wrong signature
		21: forged(topic, author, nil),              // none
	} {
		h := enemy(t, i, ps[0])
		eventually(t, func() bool {
			say(t, h, ps[0], pubsub.GossipSubID_v11, frame)
			return !ps[0].gate.allows(secret(i).Public())
		})
	}
	h := enemy(t, 22, ps[0])
	for _, frame := range [][]byte{
		[]byte("rubbish, of more bytes than the first says"),
		{0xff, 0xff, 0xff, 0xff, 0x0f}, // a frame of 4 GiB
		append(varint.ToUvarint(rpcBytesMax+1), make([]byte, rpcBytesMax+1)...),
	} {
		say(t, h, ps[0], pubsub.GossipSubID_v11, frame)
	}
	if err := ps[1].Publish([]byte("still here")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return ps[0].count(ps[1], "still here") == 1 && ps[2].count(ps[1], "still here") == 1 })
	for _, p := range ps {
		if p.count(ps[1], "forged") != 0 {
			t.Error("a forged message was believed")
		}
	}
}

func TestOversizedAndRejectedGossipDoesNotTravelAndIsBanned(t *testing.T) {
	for name, c := range map[string]struct {
		data    []byte
		verdict p2p.Verdict
	}{
		"oversized": {make([]byte, p2p.MaxGossip+1), p2p.Accept},
		"rejected":  {[]byte("rejected"), p2p.Reject},
	} {
		t.Run(name, func(t *testing.T) {
			ps := together(t, 2, nil)
			ps[0].verdict = c.verdict
			ps[1].gate.allow(secret(30).Public())
			h := enemy(t, 30, ps[0])
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			// It insists, where an honest neighbour that is pruned from the mesh after a few rejections falls silent.
			g, err := pubsub.NewGossipSub(ctx, h, pubsub.WithFloodPublish(true))
			if err != nil {
				t.Fatal(err)
			}
			topic, err := g.Join(topicName(run))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := topic.Subscribe(); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() bool { return len(topic.ListPeers()) > 0 })
			eventually(t, func() bool {
				if err := topic.Publish(ctx, c.data); err != nil {
					t.Fatal(err)
				}
				return !ps[0].gate.allows(secret(30).Public())
			})
			ps[1].gotMu.Lock()
			defer ps[1].gotMu.Unlock()
			if len(ps[1].got) != 0 {
				t.Error("it was passed on")
			}
		})
	}
}

func TestAMemberThatStaysOutOfTheGossipIsConnectedAnew(t *testing.T) {
	t.Parallel()
	a := beginWith(t, 0, times{late: lateAfter, stall: stallAfter, join: 50 * time.Millisecond}, nil)
	cut := make(chan struct{}, 100)
	h := enemy(t, 13)
	h.Network().Notify(&network.NotifyBundle{DisconnectedF: func(network.Network, network.Conn) { cut <- struct{}{} }})
	var addrs []string
	for _, x := range h.Addrs() {
		addrs = append(addrs, x.String())
	}
	a.Connect([]p2p.Peer{{Key: secret(13).Public(), Addrs: addrs}})
	<-cut
	eventually(t, func() bool { return h.Network().Connectedness(a.host.ID()) == network.Connected })
}

func FuzzQuestion(f *testing.F) {
	f.Add(appendQuestion(nil, run, []byte("hello")))
	f.Add(appendQuestion(nil, wire.Hash{}, nil))
	f.Add([]byte(strings.Repeat("\xff", 40)))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		run, question, err := readQuestion(r)
		if err != nil {
			return
		}
		if again := appendQuestion(nil, run, question); !bytes.Equal(again, b[:len(b)-r.Len()]) {
			t.Errorf("%x parses but re-encodes as %x", b, again)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add(append(p2p.AppendAnswerHead(nil, p2p.StatusOK, 2), "hi"...))
	f.Add(p2p.AppendAnswerHead(nil, p2p.StatusBusy, 0))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1000
		r := bytes.NewReader(b)
		answer, err := readAnswer(r, nil, limit)
		if err != nil {
			return
		}
		if len(answer) > limit {
			t.Errorf("an answer of %d bytes where %d are allowed", len(answer), limit)
		}
		again := append(p2p.AppendAnswerHead(nil, p2p.StatusOK, len(answer)), answer...)
		if !bytes.Equal(again, b[:len(b)-r.Len()]) {
			t.Errorf("%x parses but re-encodes as %x", b, again)
		}
	})
}

// What a member announces is an address of its own, without its name, or refused.
func FuzzAddr(f *testing.F) {
	id, err := peerID(secret(1).Public())
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"/ip4/1.2.3.4/tcp/5", "/dns4/host/udp/5/quic-v1/p2p/" + id.String(), "/p2p/" + id.String(), "/ip6zone/x/ip6/::1/tcp/1/p2p-circuit"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := parseAddr(s, id)
		if err != nil {
			return
		}
		if again, err := parseAddr(a.String(), id); err != nil || !again.Equal(a) {
			t.Errorf("%q is read as %q, and that as %q, %v", s, a, again, err)
		}
	})
}

// A member announces addresses in the private network of who dials it. Nobody connects to them
// unless the run is in a private network, or the user named the address.
func TestPrivateAddressesAreNotDialed(t *testing.T) {
	t.Parallel()
	victim, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close()
	asked := make(chan struct{}, 8)
	go func() {
		for {
			c, err := victim.Accept()
			if err != nil {
				return
			}
			asked <- struct{}{}
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(victim.Addr().String())
	liar := p2p.Peer{Key: secret(2).Public(), Addrs: []string{"/ip4/127.0.0.1/tcp/" + port, "/dns4/localhost/tcp/" + port}}

	open := begin(t, 1, nil)
	open.Connect([]p2p.Peer{liar})
	<-asked // it can be

	careful := begin(t, 3, func(o *Options) { o.PublicOnly = true })
	open.Close()
	for len(asked) > 0 {
		<-asked
	}
	id, err := peerID(liar.Key)
	if err != nil {
		t.Fatal(err)
	}
	careful.Connect([]p2p.Peer{liar})
	for _, a := range liar.Addrs {
		at, err := parseAddr(a, id)
		if err != nil {
			t.Fatal(err)
		}
		if err := careful.host.Connect(t.Context(), peer.AddrInfo{ID: id, Addrs: []ma.Multiaddr{at}}); err == nil {
			t.Errorf("%s: connected", a)
		}
	}
	if len(asked) > 0 {
		t.Error("a private address was dialed")
	}
	for addr, want := range map[string]bool{
		"/ip4/192.168.1.1/tcp/80": false, "/ip4/169.254.169.254/tcp/80": false, "/ip6/::1/udp/9/quic-v1": false, "/ip6/fd00::1/tcp/80": false,
		"/ip4/198.13.1.1/tcp/80": true, "/ip4/10.0.0.1/tcp/4001/p2p/" + id.String() + "/p2p-circuit": true,
	} {
		a, err := ma.NewMultiaddr(addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := careful.gate.InterceptAddrDial(id, a); got != want {
			t.Errorf("%s may be dialed: %v", addr, got)
		}
	}
	relay := begin(t, 4, func(o *Options) { o.Open = true })
	guest := begin(t, 5, func(o *Options) { o.PublicOnly, o.Relays = true, relay.Addrs()[:1] })
	eventually(t, func() bool { return len(guest.host.Network().Peers()) > 0 })
}
