package comet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/wire"
)

// world is a host with the run "demo" and a hub that follows it.
type world struct {
	t      testing.TB
	host   *host.Host
	hub    *hub
	height uint64
}

const genesisMs = 1_800_000_000_000

func newWorld(t testing.TB, members uint32) *world {
	t.Helper()
	host, err := host.NewHost(host.Genesis{Chain: testChain, TimeMs: genesisMs}, rules(nil))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, host: host, hub: newHub()}
	owner := signer("owner")
	w.block(w.tx("owner", createRun("demo", owner.Key.Public(), members)))
	return w
}

func (w *world) tx(who string, body host.Body) []byte {
	w.t.Helper()
	tx := host.Tx{Chain: testChain, Nonce: w.height + 1, ExpiresMs: w.host.TimeMs() + 60_000, Body: body}
	b, err := tx.Sign(privateKey(who))
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// block makes a block of transactions that must all be accepted.
func (w *world) block(txs ...[]byte) {
	w.t.Helper()
	w.height++
	w.host.Begin(host.Block{Height: w.height, TimeMs: genesisMs + w.height*200, Seed: wire.Sum("entrain/test/seed", wire.AppendU64(nil, w.height))})
	for _, tx := range txs {
		if err := w.host.Deliver(tx); err != nil {
			w.t.Fatal(err)
		}
		parsed, err := host.ParseTx(tx)
		if err != nil {
			w.t.Fatal(err)
		}
		w.hub.heard(parsed.Body)
	}
	w.host.Commit()
	w.tell()
}

// tell shows the hub the host's state, and the header that proves it.
func (w *world) tell() {
	w.hub.update(w.host, wire.Hash{}, w.host.Hash(), nil)
	w.hub.confirm(w.host.Hash(), w.host.Height()+1)
}

// demo returns a watcher that has nothing yet, and believes all headers.
func demo() *replica { return &replica{run: "demo"} }

// frame returns what a watcher at height since is sent, and packed the same compressed.
func (w *world) frame(since uint64) []byte {
	n, _ := w.hub.after("demo", since, false)
	return n.frame
}

func (w *world) packed(since uint64) []byte {
	n, _ := w.hub.after("demo", since, true)
	return n.frame
}

// grow has 40 members join, one a block. Two watchers follow, one seldom.
func (w *world) grow(always, seldom func()) {
	for i := range 40 {
		w.block(w.tx(fmt.Sprint(i), join("demo")))
		always()
		if i%7 == 0 {
			seldom()
		}
		if i%5 == 0 {
			w.block() // in which, mostly, nothing happens
		}
	}
}

func TestWatchersFollowFromWhereverTheyAre(t *testing.T) {
	w := newWorld(t, 256)
	always, lazy := demo(), demo()
	follow := func(p *replica) {
		t.Helper()
		b := w.frame(p.height)
		if p == lazy {
			b = w.packed(p.height)
		}
		if b == nil {
			return
		}
		frame, err := readFrame(iotest.HalfReader(bytes.NewReader(b)))
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.apply(frame)
		if err != nil {
			t.Fatal(err)
		}
		v, _ := w.host.View("demo")
		if s.Height != v.Changed || s.State.Hash() != v.Hash || s.TimeMs != genesisMs+v.Changed*200 {
			t.Fatalf("height %d and hash %v, want %d and %v", s.Height, s.State.Hash(), v.Changed, v.Hash)
		}
	}
	w.grow(func() { follow(always) }, func() { follow(lazy) })
	full, delta := len(w.frame(0)), len(w.frame(always.height-1))
	if delta*10 > full {
		t.Errorf("one join is sent in %d bytes, the whole state in %d", delta, full)
	}
	t.Logf("run of 256 members: state %d bytes, first frame %d, a join %d", len(always.state), full, delta)
}

// TestARestartedReplicaServesWatchersOfBefore has a hub that knows nothing of a watcher's state but
// its height.
func TestARestartedReplicaServesWatchersOfBefore(t *testing.T) {
	w := newWorld(t, 64)
	same, behind := demo(), demo()
	for _, p := range []*replica{same, behind} {
		if p == same {
			w.block(w.tx("ann", join("demo")))
		}
		if _, err := p.apply(w.frame(0)[4:]); err != nil {
			t.Fatal(err)
		}
	}
	w.block(w.tx("bob", join("demo")))
	if _, err := same.apply(w.frame(same.height)[4:]); err != nil {
		t.Fatal(err)
	}
	host, err := host.ParseHost(w.host.Append(nil), rules(nil))
	if err != nil {
		t.Fatal(err)
	}
	w.host, w.hub = host, newHub()
	w.tell()
	if w.frame(same.height) != nil {
		t.Error("a watcher that has the state is sent something")
	}
	w.block(w.tx("cat", join("demo")))
	for _, p := range []*replica{same, behind} {
		if _, err := p.apply(w.frame(p.height)[4:]); err != nil {
			t.Errorf("watcher at height %d: %v", p.height, err)
		}
	}
}

func TestFalseFramesAreRefused(t *testing.T) {
	w := newWorld(t, 64)
	first := w.frame(0)[4:]
	at := w.height
	w.block(w.tx("ann", join("demo")))
	second := w.frame(at)[4:]
	change := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 1
		return b
	}
	body := bodyAt(first)
	sinceAt, heightAt, hashAt, sizeAt, countAt, indexAt := body, body+8, body+24, body+56, body+60, body+64
	for name, b := range map[string][]byte{
		"empty":               {},
		"kind":                change(second, 0),
		"another state":       change(second, 1+8+8+8),
		"since":               change(second, sinceAt),
		"height not newer":    bytes.Join([][]byte{second[:heightAt], wire.AppendU64(nil, at), second[heightAt+8:]}, nil),
		"hash":                change(second, hashAt),
		"size":                change(second, sizeAt),
		"huge size":           change(first, sizeAt+3),
		"count":               change(second, countAt),
		"huge count":          change(second, countAt+3),
		"index":               change(second, indexAt+1),
		"contents":            change(second, len(second)-1),
		"short":               second[:len(second)-1],
		"long":                append(bytes.Clone(second), 0),
		"whole but too short": first[:len(first)-1],
		"beat that is long":   {frameBeat, 0},
	} {
		p := demo()
		if _, err := p.apply(first); err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(p.state)
		if s, err := p.apply(b); err == nil {
			t.Errorf("%s: accepted as %v", name, s)
		}
		if p.height != at || !bytes.Equal(p.state, before) {
			t.Errorf("%s: the replica has changed", name)
		}
	}
	if _, err := readFrame(bytes.NewReader(wire.AppendU32(nil, frameBytesMax+1))); err == nil {
		t.Error("a frame beyond the limit is read")
	}
	if _, err := readFrame(bytes.NewReader(wire.AppendU32(nil, frameBytesMax))); !errors.Is(err, io.EOF) {
		t.Errorf("a frame that is announced and does not come: %v", err)
	}
}

// bodyAt returns where the state begins in a frame, after its proof.
func bodyAt(frame []byte) int {
	r := wire.NewReader(frame[1+8:])
	host.ReadRunProof(&r)
	return len(frame) - r.Len()
}

func FuzzFrame(f *testing.F) {
	w := newWorld(f, 4)
	first, at := w.frame(0)[4:], w.height
	w.block(w.tx("ann", join("demo")))
	f.Add(w.frame(at)[4:])
	f.Add(w.frame(0)[4:])
	f.Add(w.packed(0)[4:])
	f.Add(w.packed(at)[4:])
	f.Add(appendBeat(nil, 1, 2)[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		p := demo()
		if _, err := p.apply(first); err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(p.state)
		s, err := p.apply(b)
		if err != nil || s == nil {
			if p.height != at || !bytes.Equal(p.state, before) {
				t.Error("the replica has changed")
			}
			return
		}
		if b[0] == framePacked {
			if b, err = unpack(b[1:]); err != nil {
				t.Fatal(err)
			}
		}
		if s.Height <= at || coordinator.State.Hash(s.State) != wire.Hash(b[bodyAt(b)+24:][:32]) {
			t.Errorf("height %d after %d, hash %v", s.Height, at, s.State.Hash())
		}
	})
}

// state returns the run's present state.
func (w *world) state() coordinator.State {
	v, ok := w.host.View("demo")
	if !ok {
		w.t.Fatal("no run demo")
	}
	return v.State
}

// A frame that claims to be a state and unpacks into something else, or into far more than a state,
// is refused.
func TestPackedFramesAreBounded(t *testing.T) {
	w := newWorld(t, 256)
	if b := w.packed(0); b[4] != framePacked || len(b) > len(w.frame(0))/4 {
		t.Errorf("a state of %d bytes is packed into %d", len(w.frame(0)), len(b))
	}
	for name, inner := range map[string][]byte{
		"a beat":              appendBeat(nil, 1, 2),
		"nothing":             make([]byte, 4),
		"more than any state": make([]byte, frameBytesMax+5),
	} {
		if name != "a beat" && len(inner) > 4 {
			inner[4] = frameState
		}
		z, _ := packer()
		if s, err := demo().apply(z.EncodeAll(inner[4:], []byte{framePacked})); err == nil || s != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
