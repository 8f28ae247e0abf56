package node

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/p2p"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/wire"
)

func TestNodesTrainARunToItsEnd(t *testing.T) {
	w := newLargeWorld(t, 120, 3)
	for i := range 3 {
		w.start(i)
	}
	w.until(10*time.Minute, w.finished)
	w.agree(0, 1, 2)
	if w.state().Epoch() < 2 {
		t.Error("the run had one epoch only; the test wants the way from one to the next")
	}
	for i, h := range w.hosts {
		for _, kind := range []string{"state", "loaded", "peers", "trained", "committed", "fetched", "applied", "evaluated", "sample"} {
			if !h.saw(func(ev event.Event) bool { return ev.Kind() == kind }) {
				t.Errorf("node %d reported nothing of kind %q", i, kind)
			}
		}
		if h.store.saves == 0 {
			t.Errorf("node %d saved no state", i)
		}
		if ev, _ := first[event.State](h); ev.Snapshot == nil || ev.Snapshot.State.Step() != ev.Step {
			t.Errorf("node %d told of a state without its snapshot: %+v", i, ev)
		}
		if ev, _ := first[event.Sample](h); ev.Step%5 != 0 || ev.Params.IsZero() || ev.Text != fmt.Sprint(ev.Step, " of so many parameters: ", w.toy.ParamsLen()) {
			t.Errorf("node %d told of its model as %+v", i, ev)
		}
		if ev, _ := first[event.Committed](h); ev.Bytes == 0 || ev.Loss != 1 || int(ev.Member) > 2 {
			t.Errorf("node %d told of another's commitment as %+v", i, ev)
		}
	}
	if _, ok := w.state().LastCheckpoint(); !ok {
		t.Error("no checkpoint was reported")
	}
}

func TestANodeComesBackFromACrash(t *testing.T) {
	w := newLargeWorld(t, 160, 3) // four, so that three of them are a quorum
	for i := range 4 {
		w.start(i)
	}
	w.until(time.Minute, func() bool { return w.state().Step() >= 20 })
	w.crash(1)
	w.until(time.Minute, func() bool { return w.state().Step() >= 30 })
	h := w.start(1)
	w.until(10*time.Minute, w.finished)
	w.agree(0, 1, 2, 3)
	if ev, ok := first[event.Loaded](h); !ok || !strings.Contains(ev.Source, "state directory") {
		t.Errorf("it did not load its state: %+v", ev)
	}
	if _, ok := first[event.Trained](h); !ok {
		t.Error("it trained nothing after the crash")
	}
}

func TestADamagedStateIsReplacedByThePeersModel(t *testing.T) {
	t.Parallel()
	w := newLargeWorld(t, 160, 3) // four, so that three of them are a quorum
	for i := range 4 {
		w.start(i)
	}
	w.until(time.Minute, func() bool { return w.state().Step() >= 10 })
	w.crash(2)
	w.hosts[2].store.damaged = errors.New("state: checksum of the parameters is wrong")
	h := w.start(2)
	w.until(10*time.Minute, w.finished)
	w.agree(0, 1, 2, 3)
	if ev, ok := first[event.Note](h); !ok || !strings.Contains(ev.Text, "checksum") {
		t.Errorf("nobody was told: %+v", ev)
	}
	if _, ok := first[event.Healed](h); !ok {
		t.Error("it never fetched the model")
	}
}

// TestThePowerGoesOutEverywhere crashes all who hold the agreed parameters. The run goes back to its last checkpoint.
func TestThePowerGoesOutEverywhere(t *testing.T) {
	w := newLargeWorld(t, 200, 3)
	for i := range 3 {
		w.start(i)
	}
	w.until(time.Minute, func() bool {
		_, ok := w.state().LastCheckpoint()
		return ok && w.state().Epoch() == 2 && w.state().Phase() == coordinator.RoundTrain
	})
	step := w.state().Step()
	w.until(time.Minute, func() bool { return w.state().Step() >= step+5 })
	for i := range 3 {
		w.crash(i)
		w.hosts[i].store.damaged = errors.New("state: the header's checksum is wrong")
	}
	for i := range 3 {
		w.start(i)
	}
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2)
	if w.state().Rollbacks() == 0 {
		t.Error("the run did not go back, so somebody kept what was lost")
	}
}

// A member that cannot keep what it signed sends nothing, because after a crash it could sign
// something else. The others go on, and so does it once there is room again.
func TestAFullDiskStopsOnlyTheOwnResults(t *testing.T) {
	w := newLargeWorld(t, 30, 3)
	for i := range 3 {
		w.start(i)
	}
	full := w.hosts[0]
	w.until(10*time.Minute, func() bool { return w.results(0) >= 3 })
	full.store.full = errDiskFull
	round := w.state().Round()
	w.until(10*time.Minute, func() bool { return w.state().Round() > round+1 }) // results on their way have arrived
	before := w.results(0)
	full.store.full = nil
	w.until(20*time.Minute, w.finished)
	w.agree(0, 1, 2)
	if !full.noted("no space left") {
		t.Error("nobody was told")
	}
	if w.results(0) == before {
		t.Error("nothing was sent after there was room again")
	}
}

func TestStopWithdrawsSavesAndEnds(t *testing.T) {
	w := newWorld(t, 1000, 1)
	w.start(0)
	h := w.start(1)
	w.until(time.Minute, func() bool { return w.state().Step() >= 5 })
	before, stopped := h.store.saves, false
	h.Stop(10*time.Second, func() { stopped = true })
	w.until(time.Minute, func() bool { return stopped })
	if i, _ := w.state().Find(w.key(1).Public()); w.state().Status(i) != coordinator.StatusWithdrawn {
		t.Errorf("its status is %s", w.state().Status(i))
	}
	if h.store.saves == before {
		t.Error("it saved nothing on stopping")
	}
	step := w.state().Step()
	w.until(5*time.Minute, func() bool { return w.state().Step() > step+3 })
}

// TestRubbishIsRefused plays a member that sends what it should not.
func TestRubbishIsRefused(t *testing.T) {
	w := newWorld(t, 20, 2)
	for i := range 3 {
		w.start(i)
	}
	w.until(time.Minute, func() bool { return w.state().Step() >= 2 })
	w.crash(2) // so that it signs nothing else for the round
	victim := &handler{node: w.hosts[0].Node, Store: w.hosts[0].blobs, Commitments: w.hosts[0].commitments}
	liar := w.key(2)
	i, _ := w.state().Find(liar.Public())
	round := w.hosts[0].state.Round() + 1
	id := w.state().ID()
	good := dispute.Commitment{Run: id, Epoch: 1, Round: round, Member: i}.Sign(liar)
	encode := func(author key.Public, s dispute.Signed) []byte {
		return s.Append(append([]byte(nil), author[:]...))
	}
	elsewhere := dispute.Commitment{Run: wire.Hash{9}, Round: round, Member: i}.Sign(liar)
	forged := good
	forged.Signature[3] ^= 1
	for name, data := range map[string][]byte{
		"nothing":              {},
		"noise":                []byte(strings.Repeat("x", 500)),
		"cut short":            encode(liar.Public(), good)[:200],
		"trailing bytes":       append(encode(liar.Public(), good), 0),
		"another run":          encode(liar.Public(), elsewhere),
		"a forged signature":   encode(liar.Public(), forged),
		"another's commitment": encode(w.key(0).Public(), good),
	} {
		if got := victim.Gossip(liar.Public(), data); got != p2p.Reject {
			t.Errorf("%s: verdict %v, want Reject", name, got)
		}
	}
	stranger := key.FromSeed([32]byte{77})
	if got := victim.Gossip(stranger.Public(), encode(stranger.Public(), good.Commitment.Sign(stranger))); got != p2p.Ignore {
		t.Errorf("a stranger's commitment: verdict %v, want Ignore", got)
	}
	if got := victim.Gossip(liar.Public(), encode(liar.Public(), good)); got != p2p.Accept {
		t.Errorf("a good commitment: verdict %v, want Accept", got)
	}
	for name, q := range map[string][]byte{
		"nothing": {}, "unknown kind": {7, 0, 0, 0, 0, 0, 0, 0, 0}, "too many": {1, 1, 0, 0, 0, 255, 255, 255, 255}, "cut short": {1, 1, 0, 0, 0, 2, 0, 0, 0, 1},
		"spans of half a hash": append([]byte{2}, make([]byte, 16)...), "spans of nothing known": append([]byte{2}, make([]byte, 32)...),
	} {
		if a := victim.Answer(liar.Public(), q); a != nil {
			t.Errorf("%s: answered %x", name, a)
		}
	}
	w.until(10*time.Minute, w.finished)
	w.agree(0, 1)
}

// TestAPayloadThatDoesNotDecodeIsRefused lets a member commit to rubbish.
func TestAPayloadThatDoesNotDecodeIsRefused(t *testing.T) {
	w := newWorld(t, 20, 3)
	// One is played by hand: it joins, is ready, and commits to bytes that are no payload.
	liar := w.key(7)
	chain := w.chain.Client().As(liar)
	send := func(m coordinator.Message) { chain.Submit(t.Context(), host.ToRun(testRun, m), func(error) {}) }
	served := blobs.New()
	peer := w.mesh.Join(liar.Public(), &blobServer{served})
	chain.Submit(t.Context(), host.Announce{Run: testRun, Addrs: peer.Addrs()}, func(error) {})
	send(coordinator.Join{})
	w.until(time.Minute, func() bool { _, ok := w.state().Find(liar.Public()); return ok })
	var others []p2p.Peer
	for i := range 3 {
		h := w.start(i)
		others = append(others, p2p.Peer{Key: w.key(i).Public(), Addrs: h.exchange.(*peers).network.Addrs()})
	}
	peer.Connect(others)
	w.until(time.Minute, func() bool { return w.state().Phase() == coordinator.Warmup })
	params, _ := w.state().Params()
	send(coordinator.Ready{Epoch: 1, Params: params})
	w.until(time.Minute, func() bool { return w.state().Phase() == coordinator.RoundTrain })
	i, _ := w.state().Find(liar.Public())
	r, _ := w.state().At(1)
	rubbish := []byte("not a payload")
	root := served.PutPayload(1, rubbish)
	c := dispute.Commitment{Run: w.state().ID(), Epoch: 1, Round: 1, Member: i, Share: batch.Hash(r.Share(i)), Payload: root,
		PayloadBytes: uint32(len(rubbish)), Params: params, Prev: w.state().Config().StateHash}
	public := liar.Public()
	if err := peer.Publish(c.Sign(liar).Append(public[:])); err != nil {
		t.Fatal(err)
	}
	w.until(10*time.Minute, w.finished)
	w.agree(0, 1, 2)
	refused := false
	for _, ev := range w.hosts[0].events {
		note, _ := ev.(event.Note)
		refused = refused || strings.Contains(note.Text, "not a toy's payload")
	}
	if !refused {
		t.Error("the rubbish was not noticed")
	}
	if p := w.state().Member(i).Points; p != 0 {
		t.Errorf("the liar earned %d points", p)
	}
}
