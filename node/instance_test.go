package node

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/p2p"
	p2pmem "github.com/entrain-network/entrain/p2p/mem"
)

// newDirStore makes a store on a directory as real members have it.
var newDirStore func(dir string, params, state int) Store

// UseDirStore sets newDirStore.
func UseDirStore(f func(dir string, params, state int) Store) bool {
	newDirStore = f
	return true
}

// on keeps the state in a directory.
func on(dir string) func(*Config) {
	return func(c *Config) { c.Store = newDirStore(dir, c.Engine.ParamsLen(), c.Engine.StateLen()) }
}

// copyDir copies the files of a directory, as a backup does.
func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// signed returns the rounds for which a node signed a commitment.
func signed(h *testNode) map[coordinator.Round]bool {
	rounds := map[coordinator.Round]bool{}
	for _, ev := range h.events {
		if ev, ok := ev.(event.Signed); ok {
			rounds[ev.Round] = true
		}
	}
	return rounds
}

// member returns what the chain has of node i.
func (w *world) member(i int) coordinator.MemberState {
	at, ok := w.state().Find(w.key(i).Public())
	if !ok {
		w.t.Fatalf("node %d is not a member", i)
	}
	return w.state().Member(at)
}

// untilCommitted runs until node i has published its commitment to the open round, which nobody
// has attested yet.
func (w *world) untilCommitted(i int, after coordinator.Round) {
	w.t.Helper()
	w.until(2*time.Minute, func() bool {
		round := w.state().Round()
		at, ok := w.state().Find(w.key(i).Public())
		if !ok || round <= after || w.state().Phase() != coordinator.RoundTrain {
			return false
		}
		for k, h := range w.hosts {
			if _, ok := h.commitments.By(round, at); k != i && ok {
				return true
			}
		}
		return false
	})
}

// slow makes rounds last: one member is slow, so that the others wait for it.
func slow(c *Config) {
	c.Cost = func(j Job) time.Duration {
		if j.Kind == "train" {
			return 3 * time.Second
		}
		return 100 * time.Millisecond
	}
}

// What a member signed last is lost, or older than what the chain shows, because its operator lost
// the state directory or restored a backup. It leaves out what may be committed, and loses nothing
// more. Each case fails by a conviction if the member believes its directory.
func TestALostOrOldDirectoryConvictsNobody(t *testing.T) {
	t.Parallel()
	for name, restore := range map[string]func(t *testing.T, before, early string) string{
		"lost":                    func(t *testing.T, _, _ string) string { return t.TempDir() },
		"the round before":        func(_ *testing.T, before, _ string) string { return before },
		"a backup of long before": func(_ *testing.T, _, early string) string { return early },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 60, 4)
			dir := t.TempDir()
			w.start(0, slow)
			w.start(1, on(dir))
			w.start(2)
			w.start(3)
			w.untilCommitted(1, 3)
			early := copyDir(t, dir)
			w.untilCommitted(1, 9)
			before := copyDir(t, dir)
			w.untilCommitted(1, 10)
			w.crash(1)
			h := w.start(1, on(restore(t, before, early)))
			w.until(10*time.Minute, w.finished)
			w.agree(0, 1, 2, 3)
			if m := w.member(1); m.Status == coordinator.StatusEjected {
				t.Fatal("an honest member was convicted")
			}
			if rounds := signed(h); len(rounds) < 40 {
				t.Errorf("it took part in %d rounds after that", len(rounds))
			}
		})
	}
}

// A chain whose only replica was restored from an early copy comes to rounds again that members have
// signed for. One that lost its state directory too, or got it back from the same copy, has the
// record beside its key: it signs nothing for these rounds, and says why.
func TestAMemberSignsNothingAgainOnAChainThatWentBack(t *testing.T) {
	t.Parallel()
	record := filepath.Join(t.TempDir(), "signed")
	beside := func(c *Config) {
		on(t.TempDir())(c)
		c.Store.(interface{ Beside(path string) }).Beside(record)
	}
	w := newWorld(t, 60, 4)
	w.start(0)
	before := w.start(1, beside)
	w.start(2)
	w.start(3)
	w.untilCommitted(1, 9)
	w.crash(1)
	again := newWorld(t, 60, 4) // the same one, from its beginning
	again.start(0)
	h := again.start(1, beside)
	again.start(2)
	again.start(3)
	again.until(10*time.Minute, again.finished)
	again.agree(0, 1, 2, 3)
	twice := signed(before)
	if len(twice) < 9 {
		t.Fatalf("it signed %d results before", len(twice))
	}
	for round := range signed(h) {
		if twice[round] {
			t.Errorf("round %d: it signed a second result", round)
		}
	}
	if len(signed(h)) < 20 {
		t.Errorf("it took part in %d rounds after these", len(signed(h)))
	}
	told := 0
	for _, ev := range h.events {
		if n, ok := ev.(event.Note); ok && strings.Contains(n.Text, "an earlier copy of the chain was restored") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("it said %d times why it waits", told)
	}
}

// Where members follow, only those elected in a round are sent all commitments to it. A member that
// lost its own must ask these.
func TestOwnCommitmentsAreAskedOfTheElected(t *testing.T) {
	w := newWorld(t, 60, 6, func(c *coordinator.Config) { c.Witnesses = 2 })
	for i := range 6 {
		w.start(i)
	}
	for round := coordinator.Round(1); round < 9; round++ {
		w.untilCommitted(0, round)
		r, _ := w.state().At(round)
		for i, h := range w.hosts {
			own, _ := h.place(w.state())
			h.state = w.state()
			asked := h.others(round, 2)
			for seat, m := range slices.DeleteFunc(r.Witnesses(), func(m coordinator.Member) bool { return m == own }) {
				if asked[seat] != w.state().Key(m) {
					t.Errorf("round %d: node %d asks %v first, not those elected", round, i, asked)
				}
			}
			if len(asked) != 2 || slices.Contains(asked, w.key(i).Public()) {
				t.Errorf("node %d asks %v", i, asked)
			}
		}
	}
}

// In a run of buckets the chain has the commitment, and so has the bucket.
func TestALostDirectoryConvictsNoMiner(t *testing.T) {
	w := newBucketWorld(t, 16, 3)
	dir := t.TempDir()
	w.mine(0)
	w.mine(1, on(dir))
	w.mine(2)
	committed := func() bool {
		r, ok := w.state().At(w.state().Round())
		at, known := w.state().Find(w.key(1).Public())
		if !ok || !known || r.Number() < 4 || w.state().Phase() != coordinator.RoundTrain {
			return false
		}
		_, ok = r.Committed(at)
		return ok
	}
	w.until(5*time.Minute, committed)
	window := w.state().Round()
	w.crash(1)
	h := w.mine(1, on(t.TempDir()))
	w.until(20*time.Minute, w.finished)
	if m := w.member(1); m.Status == coordinator.StatusEjected {
		t.Fatal("an honest miner was convicted")
	}
	rounds := signed(h)
	if rounds[window] {
		t.Error("it signed a second result for the window that was open")
	}
	if len(rounds) < 6 {
		t.Errorf("it took part in %d windows after that", len(rounds))
	}
}

// A crash loses nothing: with its directory a member takes part in the very next round, and does
// not compute again what it has signed.
func TestACrashWithTheDirectoryIntactLosesNoRound(t *testing.T) {
	w := newWorld(t, 40, 4)
	dir := t.TempDir()
	w.start(0, slow)
	before := w.start(1, on(dir))
	w.start(2)
	w.start(3)
	w.untilCommitted(1, 2)
	round := w.state().Round()
	w.crash(1)
	h := w.start(1, on(dir))
	w.until(10*time.Minute, w.finished)
	if h.noted("leaving out") {
		t.Error("it left out a round")
	}
	rounds := signed(h)
	if !signed(before)[round] || rounds[round] || !rounds[round+1] {
		t.Errorf("it crashed in round %d, and then signed %v", round, slices.Sorted(maps.Keys(rounds)))
	}
	if m := w.member(1); m.Missed != 0 {
		t.Errorf("it missed %d rounds", m.Missed)
	}
}

func TestTheFirstStartLeavesNothingOut(t *testing.T) {
	w := newWorld(t, 5, 3)
	for i := range 3 {
		w.start(i, on(t.TempDir()))
	}
	w.until(5*time.Minute, w.finished)
	for i, h := range w.hosts {
		if h.noted("leaving out") || len(signed(h)) != 5 {
			t.Errorf("node %d took part in rounds %v", i, slices.Sorted(maps.Keys(signed(h))))
		}
	}
}

// twins are processes with one key on several machines. None can be reached by another of them, as
// behind two NATs, but the peers hear them all.
type twins struct {
	w    *world
	list []*testNode
}

// newTwinWorld is a world in which several processes may have the key of node 0. One mesh has room
// for one process a key, so what twins publish goes to the handlers of the others directly.
func newTwinWorld(t *testing.T, steps, members uint32) *twins {
	w := newWorld(t, steps, members)
	w.mesh = p2pmem.NewMesh(w.clock, p2pmem.Config{Link: p2pmem.Link{Delay: 10 * time.Millisecond}, Open: true})
	return &twins{w: w}
}

// twin is the network of one of several processes with a key. Others know it in the mesh by a key
// of its own.
type twin struct {
	p2p.Network
	set  *twins
	self key.Public
}

func (n *twin) Self() key.Public { return n.self }

// Addrs are the same on each machine, as in containers that are alike.
func (n *twin) Addrs() []string { return []string{"/ip4/172.17.0.2/tcp/4001"} }

func (n *twin) Publish(data []byte) error {
	n.set.w.clock.After(10*time.Millisecond, func() {
		for i, h := range n.set.w.hosts {
			if i > 0 {
				(&handler{node: h.Node, Store: h.blobs, Commitments: h.commitments}).Gossip(n.self, data)
			}
		}
	})
	return nil
}

// start begins a process with the key of node 0 and a directory.
func (s *twins) start(dir string) (h *testNode, failed func() error) {
	var fault error
	number := byte(len(s.list))
	h = s.w.start(0, on(dir), func(c *Config) {
		c.Listen = func(hd p2p.Handler) (p2p.Network, error) {
			alias := key.FromSeed([32]byte{9, number})
			return &twin{s.w.mesh.Join(alias.Public(), hd), s, s.w.key(0).Public()}, nil
		}
		c.Instance = 1 + uint64(number)
		c.Failed = func(err error) { fault = err; h.Abandon(func() {}) }
	})
	s.list = append(s.list, h)
	return h, func() error { return fault }
}

// The same key on two machines: the second process ends with an error that says where the first
// runs, and the first goes on. Nobody is convicted, whatever directory the second has.
func TestASecondMachineWithTheKeyGivesWay(t *testing.T) {
	t.Parallel()
	for name, directory := range map[string]func(t *testing.T, dir string) string{
		"empty":  func(t *testing.T, _ string) string { return t.TempDir() },
		"copied": copyDir,
	} {
		t.Run(name, func(t *testing.T) {
			s := newTwinWorld(t, 60, 4)
			w := s.w
			dir := t.TempDir()
			_, firstFailed := s.start(dir)
			w.start(1, slow)
			w.start(2)
			w.start(3)
			w.until(2*time.Minute, func() bool { return w.state().Round() == 12 && w.state().Phase() == coordinator.RoundTrain })
			_, secondFailed := s.start(directory(t, dir))
			w.until(2*time.Minute, func() bool { return secondFailed() != nil })
			var elsewhere *ElsewhereError
			if err := secondFailed(); !errors.As(err, &elsewhere) || len(elsewhere.Addrs) != 1 {
				t.Errorf("the second ended with: %v", err)
			}
			round := w.state().Round()
			w.until(10*time.Minute, w.finished)
			if m := w.member(0); m.Status == coordinator.StatusEjected {
				t.Fatal("an honest member was convicted")
			}
			if err := firstFailed(); err != nil {
				t.Errorf("the first ended with: %v", err)
			}
			goesOn := false
			for number := range signed(s.list[0]) {
				goesOn = goesOn || number > round+3
			}
			if !goesOn {
				t.Error("the first does not go on")
			}
		})
	}
}

// After a run's end the key's owner may have the chain forget the addresses, for their rent, while
// the process still runs: that is no second process.
func TestForgottenAddressesOfAFinishedRunAreNoSecondProcess(t *testing.T) {
	s := newTwinWorld(t, 6, 2)
	h, failed := s.start(t.TempDir())
	s.w.start(1)
	s.w.until(10*time.Minute, func() bool { return h.height > 0 && h.state.Phase() == coordinator.Finished })
	for range replacedMax + 1 {
		h.announced([]string{h.instance.addr})
		h.announced(nil)
	}
	if err := failed(); err != nil || h.instance.refused {
		t.Errorf("the process ended with: %v", err)
	}
}

// Both start at the same instant, as after a power cut, or with a new key for the first time.
func TestTwoMachinesThatStartTogetherConvictNobody(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		name := "a new key"
		if known {
			name = "a member's key"
		}
		t.Run(name, func(t *testing.T) {
			s := newTwinWorld(t, 60, 4)
			w := s.w
			w.start(0)
			w.start(1, slow)
			w.start(2)
			w.start(3)
			w.crash(0)
			if known {
				w.start(0)
				w.untilCommitted(0, 8)
				w.crash(0)
			}
			_, a := s.start(t.TempDir())
			_, b := s.start(t.TempDir())
			w.until(10*time.Minute, w.finished)
			if m := w.member(0); m.Status == coordinator.StatusEjected {
				t.Fatal("an honest member was convicted")
			}
			if (a() == nil) == (b() == nil) {
				t.Errorf("one is to go on and one to end: %v, %v", a(), b())
			}
			if n := len(signed(s.list[0])) + len(signed(s.list[1])); n < 30 {
				t.Errorf("%d rounds", n)
			}
		})
	}
}

// lateAnswer is a ledger whose answer to the first question for addresses comes when held is called.
type lateAnswer struct {
	ledger.Ledger
	asked bool
	held  func()
}

// Peers implements ledger.Reader.
func (l *lateAnswer) Peers(ctx context.Context, run string, done func([]host.Peer, error)) {
	first := !l.asked
	l.asked = true
	l.Ledger.Peers(ctx, run, func(peers []host.Peer, err error) {
		if first {
			l.held = func() { done(peers, err) }
			return
		}
		done(peers, err)
	})
}

// Answers of the ledger overtake each other when many members join at once, because each one that
// joins makes a node ask again. One from before the own announcement is no second process.
func TestALateAnswerIsNoSecondProcess(t *testing.T) {
	w := newWorld(t, 6, 2)
	var fault error
	l := &lateAnswer{}
	h := w.start(0, func(c *Config) {
		l.Ledger = c.Ledger
		c.Ledger, c.Failed = l, func(err error) { fault = err }
	})
	w.start(1)
	w.until(time.Minute, func() bool { return l.held != nil && h.instance.own })
	l.held()
	w.until(10*time.Minute, func() bool { return fault != nil || h.height > 0 && h.state.Phase() == coordinator.Finished })
	if fault != nil {
		t.Errorf("the process ended with: %v", fault)
	}
}

// Where another process with the key is, its bucket does not say, and its credentials are no news.
func TestWhereAnotherProcessIsNamesNoBucket(t *testing.T) {
	got := (&ElsewhereError{Addrs: dialable([]string{"s3://NAME:SECRET@example.org/bucket?tls=0", instancePrefix + "7", "/ip4/192.0.2.1/tcp/1"})}).Error()
	if strings.Contains(got, "SECRET") || strings.Contains(got, instancePrefix) || !strings.Contains(got, "192.0.2.1") {
		t.Error(got)
	}
}
