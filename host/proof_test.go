package host

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// provable is a chain with something of everything.
func provable(t testing.TB) *chain {
	t.Helper()
	c := newSeats(t, 1<<24, "a", "b")
	for _, run := range []string{"one", "two", "three"} {
		c.accept(c.tx("op-a", createRun(run, "op-a", 4)), c.tx("ann", Announce{Run: run, Addrs: []string{"/" + run}}))
	}
	c.accept(c.tx("op-a", CreatePool{Runs: []string{"one"}, Name: "pool", Least: 1}), c.tx("op-b", Transfer{To: public("ann"), Amount: 12345}))
	c.accept(c.tx("ann", send("two", coordinator.Join{})))
	return c
}

func TestPartsOfTheStateAreProven(t *testing.T) {
	c := provable(t)
	root := c.host.Hash()
	for _, name := range c.host.Runs() {
		p, ok := c.host.ProveRun(name)
		got, err := p.Root(name)
		view, _ := c.host.View(name)
		if !ok || err != nil || got != root || p.State != view.Hash || p.Changed != view.Changed || p.Spec != SpecHash(testSpec) {
			t.Errorf("run %s: %+v leads to %v (%v), want %v", name, p, got, err, root)
		}
		if got, err := p.Root("other"); err == nil && got == root {
			t.Errorf("the proof of run %s proves another", name)
		}
		b, _ := c.host.PeersBytes(name)
		peers, hash, err := OpenPeers(b)
		if err != nil || hash != p.Peers || len(peers) != 1 || peers[0].Addrs[0] != "/"+name {
			t.Errorf("run %s: peers %v (%v)", name, peers, err)
		}
		b, _ = c.host.AdmissionBytes(name)
		if a, hash, err := OpenAdmission(b); err != nil || hash != p.Admission || a.Listed {
			t.Errorf("run %s: admission %v (%v)", name, a, err)
		}
	}
	for who, want := range map[string]uint64{"ann": 12345, "nobody": 0, "op-b": 1<<32 - 12345} {
		tokens, got, err := OpenPurse(c.host.ProvePurse(public(who)), public(who))
		if err != nil || got != root || tokens != want {
			t.Errorf("%s has %d (%v), want %d", who, tokens, err, want)
		}
	}
	replicas, got, err := OpenReplicas(c.host.ProveReplicas())
	if err != nil || got != root || !slices.EqualFunc(replicas, c.host.Replicas(), func(a, b Replica) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("replicas %v (%v)", replicas, err)
	}
	pools, got, err := OpenPools(testChain, c.host.ProvePools())
	if want, _ := c.host.Pool("pool"); err != nil || got != root || len(pools) != 1 || fmt.Sprint(pools[0]) != fmt.Sprint(want) {
		t.Errorf("pools %v (%v)", pools, err)
	}
}

// TestFalsePartsAreNotProven changes every byte of every answer: whoever reads it sees the same, or
// is led to another hash.
func TestFalsePartsAreNotProven(t *testing.T) {
	c := provable(t)
	root := c.host.Hash()
	proof, _ := c.host.ProveRun("two")
	for name, a := range map[string]struct {
		b    []byte
		open func([]byte) (string, wire.Hash, error)
	}{
		"run": {proof.Append(nil), func(b []byte) (string, wire.Hash, error) {
			r := wire.NewReader(b)
			p := ReadRunProof(&r)
			if err := r.Done().OrNil(); err != nil {
				return "", wire.Hash{}, err
			}
			got, err := p.Root("two")
			return fmt.Sprint(p.body(nil)), got, err
		}},
		"purse": {c.host.ProvePurse(public("ann")), func(b []byte) (string, wire.Hash, error) {
			tokens, got, err := OpenPurse(b, public("ann"))
			return fmt.Sprint(tokens), got, err
		}},
		"pools": {c.host.ProvePools(), func(b []byte) (string, wire.Hash, error) {
			list, got, err := OpenPools(testChain, b)
			return fmt.Sprint(list), got, err
		}},
		"replicas": {c.host.ProveReplicas(), func(b []byte) (string, wire.Hash, error) {
			list, got, err := OpenReplicas(b)
			for i := range list {
				list[i].Power = 0 // computed from the supply, which is not proven
			}
			return fmt.Sprint(list), got, err
		}},
	} {
		want, got, err := a.open(a.b)
		if err != nil || got != root {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range a.b {
			b := bytes.Clone(a.b)
			b[i] ^= 4
			if said, got, err := a.open(b); err == nil && got == root && said != want {
				t.Errorf("%s with byte %d changed says %s, and is believed", name, i, said)
			}
		}
		if _, got, err := a.open(a.b[:len(a.b)-1]); err == nil && got == root {
			t.Errorf("%s cut short is believed", name)
		}
	}
}

// TestAHistoryIsProvenForEver checks each state a run was in against the newest proof, whatever
// became of the blocks.
func TestAHistoryIsProvenForEver(t *testing.T) {
	c := newChain(t)
	var changes []Change
	note := func() {
		if v, ok := c.host.View("demo"); ok && (len(changes) == 0 || changes[len(changes)-1].Hash != v.Hash) {
			changes = append(changes, Change{Height: v.Changed, TimeMs: c.host.TimeMs(), Hash: v.Hash})
		}
	}
	c.accept(c.tx("owner", createRun("demo", "owner", 32)))
	note()
	for i := range 20 {
		c.accept(c.tx(fmt.Sprint(i), send("demo", coordinator.Join{})))
		note()
		c.block()
		if i == 10 {
			h, err := ParseHost(c.host.Append(nil), testRules())
			if err != nil {
				t.Fatal(err)
			}
			c.host = h
		}
	}
	p, _ := c.host.ProveRun("demo")
	if p.Changes != uint64(len(changes)) {
		t.Fatalf("%d changes, saw %d", p.Changes, len(changes))
	}
	half, err := CheckHistory(merkle.Tree{}, changes[:3], p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := CheckHistory(half, changes[3:], p); err != nil {
		t.Error(err)
	}
	forged := slices.Clone(changes[3:])
	forged[1].Hash = wire.Sum("entrain/test/forged")
	if _, err := CheckHistory(half, forged, p); err == nil {
		t.Error("a forged change is believed")
	}
	if _, err := CheckHistory(half, append(forged, forged...), p); err == nil {
		t.Error("too many changes are believed")
	}
}

func TestRestoredStateIsThatOfTheLastChange(t *testing.T) {
	c := provable(t)
	want := c.host.Append(nil)
	c.block()
	c.block()
	h, err := RestoreHost(c.host.Append(nil), testRules())
	if err != nil || !bytes.Equal(h.Append(nil), want) || h.Hash() != c.host.Hash() {
		t.Fatalf("the state after two empty blocks is not restored to that before: %v", err)
	}
	// What is not in the hash does not survive: a false time or seed of later blocks.
	c.host.Begin(Block{Height: c.host.Height() + 1, TimeMs: c.host.TimeMs() + 1, Seed: wire.Sum("entrain/test/false")})
	c.host.Commit()
	if h, err = RestoreHost(c.host.Append(nil), testRules()); err != nil || !bytes.Equal(h.Append(nil), want) {
		t.Errorf("another seed was believed: %v", err)
	}
}

func FuzzProofs(f *testing.F) {
	c := provable(f)
	proof, _ := c.host.ProveRun("two")
	peers, _ := c.host.PeersBytes("two")
	admission, _ := c.host.AdmissionBytes("two")
	for _, b := range [][]byte{proof.Append(nil), c.host.ProvePurse(public("ann")), c.host.ProvePools(), c.host.ProveReplicas(), c.host.ProveClosed(), peers, admission} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := wire.NewReader(b)
		if p := ReadRunProof(&r); r.Done() == wire.OK {
			if again := p.Append(nil); !bytes.Equal(again, b) {
				t.Errorf("%x reads as %x", b, again)
			}
			_, _ = p.Root("two")
		}
		_, _, _ = OpenPurse(b, public("ann"))
		_, _, _ = OpenPools(testChain, b)
		_, _, _ = OpenReplicas(b)
		_, _, _ = OpenClosed(b)
		_, _, _ = OpenPeers(b)
		_, _, _ = OpenAdmission(b)
	})
}
