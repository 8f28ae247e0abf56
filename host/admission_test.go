package host

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

func keysOf(names ...string) []key.Public {
	var ks []key.Public
	for _, n := range names {
		ks = append(ks, public(n))
	}
	slices.SortFunc(ks, key.Public.Compare)
	return ks
}

func (c *chain) certificate(owner, node string, forMs uint64) Delegate {
	return Delegate{Run: "demo", Certificate: NewCertificate(privateKey(owner), c.host.Chain(), "demo", public(node), c.host.TimeMs()+forMs)}
}

func TestOnlyListedKeysTakePart(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	c.accept(c.tx("eve", send("demo", coordinator.Join{}))) // while anybody may
	for _, step := range []struct {
		who  string
		body Body
		want Code
	}{
		{"eve", Admit{Run: "demo", Listed: true, Add: keysOf("eve")}, CodeNotOwner},
		{"owner", Admit{Run: "none", Listed: true}, CodeUnknownRun},
		{"owner", Admit{Run: "demo", Listed: true, Add: keysOf("ann", "bob")}, CodeOK},
		{"eve", send("demo", coordinator.Withdraw{}), CodeCoordinator + Code(coordinator.ErrNotMember)}, // the list has withdrawn it
		{"eve", send("demo", coordinator.Join{}), CodeNotAdmitted},
		{"ann", send("demo", coordinator.Join{}), CodeOK},
		{"eve", send("demo", coordinator.Ready{}), CodeNotAdmitted},
		{"eve", send("demo", coordinator.RegisterValidator{}), CodeNotAdmitted},
		{"eve", send("demo", coordinator.Tick{}), CodeOK}, // not a participant's
		{"owner", Admit{Run: "demo", Listed: true, Remove: keysOf("ann")}, CodeOK},
		{"ann", send("demo", coordinator.Join{}), CodeNotAdmitted},
		{"bob", send("demo", coordinator.Join{}), CodeOK},
		{"owner", Admit{Run: "demo"}, CodeOK}, // anybody again
		{"eve", send("demo", coordinator.Join{}), CodeOK},
	} {
		c.want(step.want, c.tx(step.who, step.body))
	}
	if a, ok := c.host.Admission("demo"); !ok || a.Listed || !slices.Equal(a.Allowed, keysOf("bob")) {
		t.Errorf("admission %+v", a)
	}
	if got := c.member("ann").Status; got != coordinator.StatusWithdrawn {
		t.Errorf("who was taken off the list is %v", got)
	}
}

func TestTheOwnerSaysWhichReleaseJoins(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	first, _ := c.host.AdmissionBytes("demo")
	_, before, _ := OpenAdmission(first)
	for _, step := range []struct {
		who     string
		body    Require
		want    Code
		program string
	}{
		{"eve", Require{"demo", "v1.2.0"}, CodeNotOwner, ""},
		{"owner", Require{"none", "v1.2.0"}, CodeUnknownRun, ""},
		{"owner", Require{"demo", "v1\n"}, CodeMalformed, ""},
		{"owner", Require{"demo", "v1.2.0"}, CodeOK, "v1.2.0"},
		{"owner", Require{"demo", "v1.3.0"}, CodeOK, "v1.3.0"},
		{"owner", Require{"demo", ""}, CodeOK, ""},
		{"owner", Require{"demo", "v2.0.0"}, CodeOK, "v2.0.0"},
	} {
		c.want(step.want, c.tx(step.who, step.body))
		if a, _ := c.host.Admission("demo"); a.Program != step.program {
			t.Errorf("after %+v it is %q", step.body, a.Program)
		}
	}
	c.accept(c.tx("eve", send("demo", coordinator.Join{}))) // programs look at it themselves
	b, ok := c.host.AdmissionBytes("demo")
	a, hash, err := OpenAdmission(b)
	if !ok || err != nil || a.Program != "v2.0.0" || hash == before {
		t.Errorf("proven to be %q by %s, before it was %s: %v", a.Program, hash, before, err)
	}
}

func TestANodeWorksForItsOwnerUntilItsTimeIsOver(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	c.accept(c.tx("owner", Admit{Run: "demo", Listed: true, Add: keysOf("ann")}))
	good := c.certificate("ann", "node", 60_000)
	for _, step := range []struct {
		who  string
		body Body
		want Code
	}{
		{"node", send("demo", coordinator.Join{}), CodeNotAdmitted},
		{"eve", good, CodeDelegation},                                                  // another's
		{"node", c.certificate("eve", "node", 60_000), CodeNotAdmitted},                // the owner is not listed
		{"node", c.certificate("ann", "node", DelegationMsMax+60_000), CodeDelegation}, // too long
		{"ann", c.certificate("ann", "ann", 60_000), CodeDelegation},                   // for itself
		{"node", Delegate{"demo", NewCertificate(privateKey("ann"), testChain, "other", public("node"), c.host.TimeMs()+60_000)}, CodeDelegation},
		{"node", Delegate{"demo", NewCertificate(privateKey("ann"), "other-chain", "demo", public("node"), c.host.TimeMs()+60_000)}, CodeDelegation},
		{"node", good, CodeOK},
		{"node", send("demo", coordinator.Join{}), CodeOK},
		{"eve", Revoke{Run: "demo", Node: public("node")}, CodeDelegation},
	} {
		c.want(step.want, c.tx(step.who, step.body))
	}
	if got := c.member("node"); got.Payee != public("ann") {
		t.Errorf("a node of ann's is paid at %v", got.Payee)
	}
	c.blockAfter(40_000)
	if got := c.member("node").Status; !got.Present() {
		t.Errorf("before its time is over the node is %v", got)
	}
	c.blockAfter(30_000)
	if got := c.member("node").Status; got != coordinator.StatusWithdrawn {
		t.Errorf("after its time is over the node is %v", got)
	}
	c.want(CodeDelegation, c.tx("node", good))
	again := c.certificate("ann", "node", 60_000)
	c.accept(c.tx("node", again), c.tx("node", send("demo", coordinator.Join{})))
	c.accept(c.tx("ann", Revoke{Run: "demo", Node: public("node")}))
	if got := c.member("node").Status; got != coordinator.StatusWithdrawn {
		t.Errorf("a revoked node is %v", got)
	}
	c.want(CodeDelegation, c.tx("node", again))
	c.want(CodeNotAdmitted, c.tx("node", send("demo", coordinator.Join{})))
	// Nobody else's certificate makes room for the revoked one.
	c.accept(c.tx("owner", Admit{Run: "demo", Listed: true, Add: keysOf("eve")}))
	c.want(CodeDelegation, c.tx("node", c.certificate("eve", "node", 60_000)))
	c.want(CodeDelegation, c.tx("node", again))
}

// A thief of a node's key takes neither the node nor what its owner has at stake in the run.
func TestAStolenNodeStaysItsOwners(t *testing.T) {
	c := newBankChain(t, 1000, "node")
	c.accept(c.tx("owner", stakeRun()))
	short := c.certificate("ann", "node", 1000)
	c.accept(c.tx("node", short), c.tx("node", c.certificate("ann", "node", 60_000)))
	c.accept(c.tx("node", bring(100, "", coordinator.Join{})))
	c.want(CodeDelegation, c.tx("node", c.certificate("thief", "node", 90_000)))
	c.accept(c.tx("node", short)) // it shortens nothing: then the thief's would count
	c.blockAfter(1000)
	c.want(CodeDelegation, c.tx("node", c.certificate("thief", "node", 90_000)))
	c.accept(c.tx("ann", Revoke{Run: "demo", Node: public("node")}))
	c.want(CodeNotAdmitted, c.tx("node", bring(0, "", coordinator.Join{}))) // with ann's stake
	c.blockAfter(5000, c.tx("ann", ClaimFor{Run: "demo", Member: public("node")}))
	c.holds("ann", 100)
}

// A revoked delegation is not forgotten for others while the node has a place in the run.
func TestAFullTableKeepsRevokedMembers(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	good := c.certificate("ann", "node", 60_000)
	c.accept(c.tx("node", good), c.tx("node", send("demo", coordinator.Join{})))
	c.accept(c.tx("ann", Revoke{Run: "demo", Node: public("node")}))
	c.fillDelegations(90_000)
	c.accept(c.tx("late", c.certificate("bob", "late", 1000)))
	c.want(CodeDelegation, c.tx("node", good))
}

// fillDelegations fills the table with delegations that end after forMs, by owners of one node
// each.
func (c *chain) fillDelegations(forMs uint64) {
	a := &c.host.runs[0].admission
	for i := len(a.delegations); i < DelegationsMax; i++ {
		a.delegations = append(a.delegations, Delegation{Node: key.Public{255, byte(i >> 8), byte(i)}, Owner: key.Public{1, byte(i >> 8), byte(i)}, ExpiresMs: c.host.TimeMs() + forMs + uint64(i)})
	}
	slices.SortFunc(a.delegations, func(a, b Delegation) int { return a.Node.Compare(b.Node) })
}

func TestAnOwnerHasOnlySoManyNodes(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	name := func(i int) string { return "node" + string(rune('a'+i/26)) + string(rune('a'+i%26)) }
	for i := range DelegationsPerOwner {
		c.accept(c.tx(name(i), c.certificate("ann", name(i), 60_000)))
	}
	c.want(CodeListFull, c.tx("node", c.certificate("ann", "node", 60_000)))
	c.accept(c.tx(name(3), c.certificate("ann", name(3), 90_000))) // a longer one takes no place
	c.blockAfter(60_001)
	a, _ := c.host.Admission("demo")
	if len(a.Delegations) != 1 || a.Owner(public(name(3)), c.host.TimeMs()) != public("ann") {
		t.Errorf("left: %+v", a.Delegations)
	}
}

func TestAFullTableForgetsWhoIsNoMember(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	c.accept(c.tx("node", c.certificate("ann", "node", 1000)), c.tx("node", send("demo", coordinator.Join{})))
	r := c.host.runs[0]
	c.fillDelegations(50_000)
	c.accept(c.tx("late", c.certificate("bob", "late", 1000)))
	if _, ok := findDelegation(r.admission.delegations, key.Public{255, 0, 1}); ok || len(r.admission.delegations) != DelegationsMax {
		t.Error("the one that ends first, and is not a member, should have given way")
	}
	if _, ok := findDelegation(r.admission.delegations, public("node")); !ok {
		t.Error("a member's delegation gave way")
	}
}

func TestAdmissionIsPartOfTheStateAndSurvivesARestart(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	seen := []wire.Hash{c.host.Hash()}
	rest := func(h *Host) []byte { // what is hashed but for the nonces
		return h.runs[0].admission.append(nil)
	}
	for _, tx := range [][]byte{
		c.tx("owner", Admit{Run: "demo", Listed: true, Add: keysOf("ann", "bob")}),
		c.tx("node", c.certificate("ann", "node", 60_000)),
		c.tx("ann", Revoke{Run: "demo", Node: public("node")}),
	} {
		before := c.host.runLeaves()[0]
		c.accept(tx)
		if c.host.runLeaves()[0] == before || slices.Contains(seen, c.host.Hash()) {
			t.Errorf("transaction %x does not show in the hash", tx[:8])
		}
		seen = append(seen, c.host.Hash())
	}
	h, err := ParseHost(c.host.Append(nil), Rules{})
	if err != nil || h.Hash() != c.host.Hash() || !bytes.Equal(rest(h), rest(c.host)) {
		t.Fatalf("restored: %v", err)
	}
}

// Whatever the owner and the nodes send, a present member of a run with a list is always one whom
// the list allows.
func TestMembersAreAlwaysAllowed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChain(t)
		c.accept(c.tx("owner", createRun("demo", "owner", 16)))
		names := []string{"ann", "bob", "cat", "dan"}
		pick := func(label string) string { return rapid.SampledFrom(names).Draw(rt, label) }
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			who, other := pick("who"), pick("other")
			var b []byte
			switch rapid.IntRange(0, 5).Draw(rt, "kind") {
			case 0:
				b = c.tx("owner", Admit{Run: "demo", Listed: rapid.Bool().Draw(rt, "listed"), Add: keysOf(who)})
			case 1:
				b = c.tx("owner", Admit{Run: "demo", Listed: true, Remove: keysOf(who)})
			case 2:
				b = c.tx(who, c.certificate(other, who, uint64(rapid.IntRange(1, 3000).Draw(rt, "for"))))
			case 3:
				b = c.tx(other, Revoke{Run: "demo", Node: public(who)})
			default:
				b = c.tx(who, send("demo", coordinator.Join{}))
			}
			c.blockAfter(uint64(rapid.IntRange(1, 1000).Draw(rt, "ms")), b)
			a, _ := c.host.Admission("demo")
			v, _ := c.host.View("demo")
			for i := range v.State.Count() {
				if m := v.State.Member(i); m.Status.Present() && !a.Allows(m.Key, c.host.TimeMs()) {
					rt.Fatalf("%v takes part, and is not allowed: %+v", m.Key, a)
				}
			}
		}
	})
}

func FuzzReadAdmission(f *testing.F) {
	a := admission{listed: true, allowed: keysOf("ann", "bob"), delegations: []Delegation{{Node: public("cat"), Owner: public("ann"), ExpiresMs: 7, Revoked: true}}}
	f.Add(a.append(nil))
	f.Add((&admission{}).append(nil))
	f.Add((&admission{program: "v1.2.0"}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := wire.NewReader(b)
		got := parseAdmission(&r)
		if r.Done() == wire.OK && !bytes.Equal(got.append(nil), b) {
			t.Errorf("%x parses but re-encodes as %x", b, got.append(nil))
		}
	})
}
