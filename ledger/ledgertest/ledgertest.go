// Package ledgertest has the tests that every ledger must pass: what participants may expect of a
// [ledger.Reader] and of [ledger.Ledger.Submit].
//
//	func TestLedger(t *testing.T) { ledgertest.Test(t, connect) }
package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// Client is a connection to the chain.
type Client interface {
	ledger.Reader
	As(k key.Private) ledger.Ledger
}

// A Link is a client, and what cuts it off the chain or reconnects it.
type Link struct {
	Client
	Cut func(on bool)
}

// patience bounds the wait for what must happen. Only a failing test waits so long.
const patience = 30 * time.Second

// Test runs all tests. Connect returns a new link to one chain, which anybody may use and which
// makes blocks in milliseconds. The link ends with the test.
func Test(t *testing.T, connect func() Link) {
	t.Run("unknown", func(t *testing.T) { testUnknown(t, connect) })
	t.Run("watch", func(t *testing.T) { testWatch(t, connect) })
	t.Run("ask", func(t *testing.T) { testAsk(t, connect) })
	t.Run("refuse", func(t *testing.T) { testRefuse(t, connect) })
	t.Run("reconnect", func(t *testing.T) { testReconnect(t, connect) })
	t.Run("cancel", func(t *testing.T) { testCancel(t, connect) })
}

func private(name string) key.Private {
	return key.FromSeed(wire.Sum("entrain/ledgertest", []byte(name)))
}

// specOf is the text that is published with a run.
func specOf(run string) []byte { return []byte("name = \"" + run + "\"\n") }

// create makes a run whose members need only join.
func create(t *testing.T, c Client, run string) {
	t.Helper()
	owner := private("owner")
	must(t, c.As(owner), host.CreateRun{
		Limits: coordinator.Limits{Members: 64, Witnesses: 4},
		Config: coordinator.Config{
			Name: run, MinMembers: 1, StartMembers: 8, WaitingMs: 600_000,
			WarmupMs: 600_000, RoundTrainMs: 10_000, RoundWitnessMs: 10_000, CooldownMs: 10_000, EpochMs: 600_000,
			TotalSteps: 100, BatchStart: 8, BatchEnd: 8, SequenceTokens: 128, MissedMax: 3,
			ModelHash: wire.Sum("entrain/ledgertest/model"), SpecHash: host.SpecHash(specOf(run)), Owner: owner.Public(),
		},
		Spec: specOf(run),
	})
}

func join(run string) host.Body {
	return host.RunMessage{Run: run, Message: coordinator.Append(nil, coordinator.Join{Speed: 1})}
}

// submit returns where the outcomes of a message go. There must be one.
func submit(ctx context.Context, l ledger.Ledger, body host.Body) <-chan error {
	done := make(chan error, 2)
	l.Submit(ctx, body, func(err error) { done <- err })
	return done
}

// must submits a message that the chain accepts.
func must(t *testing.T, l ledger.Ledger, body host.Body) {
	t.Helper()
	if err := wait(t, submit(t.Context(), l, body)); err != nil {
		t.Fatal(err)
	}
}

func wait[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing happened")
		panic("unreachable")
	}
}

// watch returns the snapshots of a run.
func watch(ctx context.Context, c Client, run string) <-chan ledger.Snapshot {
	seen := make(chan ledger.Snapshot, 10_000)
	c.Watch(ctx, run, func(s ledger.Snapshot) { seen <- s })
	return seen
}

// until returns the first snapshot with a number of members. Heights must increase.
func until(t *testing.T, seen <-chan ledger.Snapshot, members coordinator.Member) ledger.Snapshot {
	t.Helper()
	last := wait(t, seen)
	for last.State.Count() != members {
		next := wait(t, seen)
		if next.Height <= last.Height || next.TimeMs < last.TimeMs {
			t.Fatalf("a snapshot of height %d and time %d after one of height %d and time %d", next.Height, next.TimeMs, last.Height, last.TimeMs)
		}
		last = next
	}
	return last
}

func testUnknown(t *testing.T, connect func() Link) {
	c := connect()
	errs := make(chan error, 2)
	c.Spec(t.Context(), "none", func(_ []byte, err error) { errs <- err })
	c.Peers(t.Context(), "none", func(_ []host.Peer, err error) { errs <- err })
	for range 2 {
		if err := wait(t, errs); !errors.Is(err, ledger.ErrUnknownRun) {
			t.Errorf("error %v, want ErrUnknownRun", err)
		}
	}
	if err := wait(t, submit(t.Context(), c.As(private("ann")), join("none"))); host.CodeOf(err) != host.CodeUnknownRun {
		t.Errorf("a message to no run: %v", err)
	}
}

// testWatch has two clients that see the same run, one from before it exists.
func testWatch(t *testing.T, connect func() Link) {
	a, b := connect(), connect()
	if a.ChainID() == "" || a.ChainID() != b.ChainID() || a.As(private("ann")).ChainID() != a.ChainID() {
		t.Errorf("chains %q and %q", a.ChainID(), b.ChainID())
	}
	early := watch(t.Context(), a, "watched")
	create(t, b, "watched")
	first := wait(t, early)
	if first.State.Count() != 0 || first.State.Config().Name != "watched" {
		t.Errorf("the first snapshot has %d members of %q", first.State.Count(), first.State.Config().Name)
	}
	names := []string{"ann", "bob", "cat"}
	for _, name := range names {
		must(t, b.As(private(name)), join("watched"))
	}
	one, other := until(t, early, 3), until(t, watch(t.Context(), b, "watched"), 3)
	if one.State.Hash() != other.State.Hash() || one.Height <= first.Height {
		t.Errorf("states %v at %d and %v at %d", one.State.Hash(), one.Height, other.State.Hash(), other.Height)
	}
	for i, name := range names { // who waited for an answer before another asked comes first
		if at, ok := one.State.Find(private(name).Public()); !ok || int(at) != i {
			t.Errorf("%s is member %d, %v, want %d", name, at, ok, i)
		}
	}
}

func testAsk(t *testing.T, connect func() Link) {
	c := connect()
	create(t, c, "asked")
	spec := make(chan []byte, 1)
	c.Spec(t.Context(), "asked", func(b []byte, err error) {
		if err != nil {
			t.Error(err)
		}
		spec <- b
	})
	if got := wait(t, spec); !bytes.Equal(got, specOf("asked")) {
		t.Errorf("specification %q", got)
	}
	peers := func() []host.Peer {
		answer := make(chan []host.Peer, 1)
		c.Peers(t.Context(), "asked", func(p []host.Peer, err error) {
			if err != nil {
				t.Error(err)
			}
			answer <- p
		})
		return wait(t, answer)
	}
	if got := peers(); len(got) != 0 {
		t.Errorf("peers %v of a run without any", got)
	}
	for _, addrs := range [][]string{{"/dns/here"}, {"/dns/there", "/dns/everywhere"}} {
		for _, name := range []string{"ann", "bob"} {
			l := c.As(private(name + " asks"))
			if len(addrs) == 1 {
				must(t, l, join("asked"))
			}
			must(t, l, host.Announce{Run: "asked", Addrs: addrs})
		}
		got := peers()
		sorted := slices.IsSortedFunc(got, func(a, b host.Peer) int { return bytes.Compare(a.Key[:], b.Key[:]) })
		if len(got) != 2 || !sorted || !slices.Equal(got[0].Addrs, addrs) || !slices.Equal(got[1].Addrs, addrs) {
			t.Errorf("peers %v, want two with %v, in order of keys", got, addrs)
		}
	}
}

func testRefuse(t *testing.T, connect func() Link) {
	c := connect()
	create(t, c, "refusing")
	ann := c.As(private("ann"))
	must(t, ann, join("refusing"))
	seen := watch(t.Context(), c, "refusing")
	before := until(t, seen, 1)
	again := submit(t.Context(), ann, join("refusing"))
	err := wait(t, again)
	var refused *host.TxError
	if want := host.CodeCoordinator + host.Code(coordinator.ErrAlreadyMember); !errors.As(err, &refused) || refused.Code != want {
		t.Errorf("a second join: %v, want code %v", err, want)
	}
	must(t, c.As(private("bob")), join("refusing")) // the next block
	if after := until(t, seen, 2); after.State.Count() != 2 || after.Height <= before.Height {
		t.Errorf("%d members at %d after a message that was refused", after.State.Count(), after.Height)
	}
	select {
	case err := <-again:
		t.Errorf("a second answer: %v", err)
	default:
	}
}

// testReconnect cuts a client off, and lets things happen on both sides.
func testReconnect(t *testing.T, connect func() Link) {
	near, far := connect(), connect()
	create(t, near, "cut")
	seen := watch(t.Context(), far, "cut")
	until(t, seen, 0)
	far.Cut(true)
	waits := submit(t.Context(), far.As(private("ann")), join("cut"))
	spec := make(chan error, 1)
	far.Spec(t.Context(), "cut", func(_ []byte, err error) { spec <- err })
	must(t, near.As(private("bob")), join("cut"))
	select {
	case s := <-seen:
		t.Errorf("a client that is cut off sees height %d", s.Height)
	case err := <-waits:
		t.Errorf("a client that is cut off is answered: %v", err)
	default:
	}
	far.Cut(false)
	if err := errors.Join(wait(t, waits), wait(t, spec)); err != nil {
		t.Errorf("what was asked while cut off: %v", err)
	}
	mine, its := until(t, seen, 2), until(t, watch(t.Context(), near, "cut"), 2)
	if mine.State.Hash() != its.State.Hash() {
		t.Error("the client that was cut off has another state")
	}
	select {
	case err := <-waits:
		t.Errorf("a second answer: %v", err)
	default:
	}
}

// testCancel ends the context of calls that have no answer yet.
func testCancel(t *testing.T, connect func() Link) {
	near, far := connect(), connect()
	create(t, near, "ended")
	ctx, cancel := context.WithCancel(t.Context())
	far.Cut(true)
	var calls atomic.Int32
	far.Watch(ctx, "ended", func(ledger.Snapshot) { calls.Add(1) })
	far.As(private("ann")).Submit(ctx, join("ended"), func(error) { calls.Add(1) })
	far.Spec(ctx, "ended", func([]byte, error) { calls.Add(1) })
	far.Peers(ctx, "ended", func([]host.Peer, error) { calls.Add(1) })
	cancel()
	far.Cut(false)
	until(t, watch(t.Context(), far, "ended"), 0) // the link works again
	must(t, far.As(private("bob")), join("ended"))
	if n := calls.Load(); n != 0 {
		t.Errorf("%d calls after their context has ended", n)
	}
}
