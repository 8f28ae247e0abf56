package host

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/wire"
)

func TestARunIsCreatedJoinedAndTicked(t *testing.T) {
	c := newChain(t)
	if _, ok := c.host.View("demo"); ok {
		t.Error("there is a run before it was created")
	}
	c.accept(c.tx("owner", createRun("demo", "owner", 16)), c.tx("ann", send("demo", coordinator.Join{Speed: 1})))
	before, _ := c.host.View("demo")
	bytesBefore := bytes.Clone(before.State.Bytes())
	c.blockAfter(600_000) // the warmup is over, and nobody is ready
	after, ok := c.host.View("demo")
	if !ok || before.State.Phase() != coordinator.Warmup || after.Hash == before.Hash || after.Changed != 2 {
		t.Fatalf("phase %v, after a tick %v, changed at %d", before.State.Phase(), after.State.Phase(), after.Changed)
	}
	if after.Hash != after.State.Hash() {
		t.Error("a view's hash is not its state's")
	}
	if !bytes.Equal(before.State.Bytes(), bytesBefore) || before.Changed != 1 {
		t.Error("a view changed after it was taken")
	}
	if spec, ok := c.host.Spec("demo"); !ok || !bytes.Equal(spec, testSpec) {
		t.Errorf("spec is %q", spec)
	}
	if got := c.host.Runs(); !slices.Equal(got, []string{"demo"}) {
		t.Errorf("runs are %q", got)
	}
}

func TestUnchangedStateHasAnUnchangedHash(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	first := c.host.Hash()
	for range 10 {
		c.block()
	}
	if c.host.Hash() != first {
		t.Error("empty blocks changed the hash")
	}
	seen := []wire.Hash{first}
	for _, body := range []Body{
		send("demo", coordinator.Join{}),
		Announce{Run: "demo", Addrs: []string{"/a"}},
		Announce{Run: "demo", Addrs: []string{"/a"}}, // changes the nonces
	} {
		c.accept(c.tx("ann", body))
		if slices.Contains(seen, c.host.Hash()) {
			t.Errorf("%+v did not change the hash", body)
		}
		seen = append(seen, c.host.Hash())
	}
}

func TestRefusedTransactionsAreNotTaken(t *testing.T) {
	c := newChain(t)
	used := c.tx("ann", Announce{Run: "none"})
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	c.block(used)
	now := c.host.TimeMs()
	good := Tx{Chain: testChain, Nonce: 100, ExpiresMs: now + 1000, Body: send("demo", coordinator.Join{})}
	forged := c.sign("ann", good)
	forged[20] ^= 1 // of the sender
	other, expired, late := good, good, good
	other.Chain, expired.ExpiresMs, late.ExpiresMs = "other-chain", now, now+TxLifetimeMs+1
	zero := c.sign("ann", good)
	copy(zero[4+len(testChain):], make([]byte, 32))

	for _, tx := range []struct {
		name string
		b    []byte
		want Code
	}{
		{"malformed", []byte("hello"), CodeMalformed},
		{"empty", nil, CodeMalformed},
		{"trailing byte", append(c.sign("ann", good), 0), CodeMalformed},
		{"too large", make([]byte, TxBytesMax+1), CodeTooLarge},
		{"other chain", c.sign("ann", other), CodeWrongChain},
		{"forged", forged, CodeBadSignature},
		{"key of small order", zero, CodeBadSignature},
		{"expired", c.sign("ann", expired), CodeExpired},
		{"expires late", c.sign("ann", late), CodeExpiresLate},
		{"replayed", used, CodeReplayed},
	} {
		before := c.host.Append(nil)
		c.host.Begin(Block{Height: c.height, TimeMs: now, Seed: c.host.Seed()})
		err := c.host.Deliver(tx.b)
		if got := CodeOf(err); got != tx.want || got.Taken() {
			t.Errorf("%s: got %v, want %v", tx.name, got, tx.want)
		}
		if timed := tx.want == CodeExpired || tx.want == CodeExpiresLate; timed && !strings.Contains(err.Error(), "is this machine's clock right") {
			t.Errorf("%s: %v", tx.name, err)
		}
		c.host.Commit()
		if !bytes.Equal(c.host.Append(nil), before) {
			t.Errorf("%s: the state has changed", tx.name)
		}
	}
}

func TestWhatARunRefusesUsesUpTheNonce(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)), c.tx("ann", send("demo", coordinator.Join{})))
	bad := func(change func(*CreateRun)) CreateRun {
		r := createRun("other", "owner", 16)
		change(&r)
		return r
	}
	for _, tx := range []struct {
		name string
		body Body
		want Code
	}{
		{"name of dots", bad(func(r *CreateRun) { r.Config.Name = "a.b" }), CodeBadName},
		{"unknown run", send("none", coordinator.Join{}), CodeUnknownRun},
		{"announce to an unknown run", Announce{Run: "none"}, CodeUnknownRun},
		{"name taken", createRun("demo", "owner", 16), CodeRunExists},
		{"another's run", createRun("other", "ann", 16), CodeNotOwner},
		{"bad configuration", bad(func(r *CreateRun) { r.Config.TotalSteps = 0 }), CodeBadConfig},
		{"another spec", bad(func(r *CreateRun) { r.Spec = []byte("x") }), CodeBadSpec},
		{"bad message", RunMessage{Run: "demo", Message: []byte{255}}, CodeBadMessage},
		{"not the owner's", send("demo", coordinator.Withdraw{}), CodeCoordinator + Code(coordinator.ErrNotMember)},
	} {
		b := c.tx("owner", tx.body)
		view, _ := c.host.View("demo")
		if got := c.block(b)[0]; got != tx.want || !got.Taken() {
			t.Errorf("%s: got %v, want %v", tx.name, got, tx.want)
		}
		parsed, err := ParseTx(b)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := c.host.Outcome(parsed); !ok || got != tx.want {
			t.Errorf("%s: remembered as %v (%v)", tx.name, got, ok)
		}
		if got := c.block(b)[0]; got != CodeReplayed {
			t.Errorf("%s: sent again: got %v", tx.name, got)
		}
		if after, _ := c.host.View("demo"); tx.want >= CodeCoordinator && after.Hash != view.Hash && after.State.Phase() == view.State.Phase() {
			t.Errorf("%s: the run has changed", tx.name)
		}
	}
	if got := c.host.Runs(); len(got) != 1 {
		t.Errorf("runs are %q", got)
	}
}

func TestOnlyCreatorsCreateRuns(t *testing.T) {
	creators := []key.Public{public("ann"), public("bob")}
	slices.SortFunc(creators, key.Public.Compare)
	c := newChain(t, creators...)
	codes := c.block(c.tx("cat", createRun("demo", "cat", 4)), c.tx("bob", createRun("demo", "bob", 4)))
	if codes[0] != CodeNotCreator || codes[1] != CodeOK {
		t.Errorf("got %v", codes)
	}
	for name, g := range map[string]Genesis{
		"order": {Chain: testChain, Creators: []key.Public{creators[1], creators[0]}},
		"twice": {Chain: testChain, Creators: []key.Public{creators[0], creators[0]}},
		"chain": {Chain: "Bad"},
		"many":  {Chain: testChain, Creators: make([]key.Public, CreatorsMax+1)},
	} {
		if _, err := NewHost(g, Rules{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRunsAreBounded(t *testing.T) {
	c := newChain(t)
	for i := range RunsMax {
		c.accept(c.tx("owner", createRun(fmt.Sprint("run-", i), "owner", 1)))
	}
	if got := c.block(c.tx("owner", createRun("more", "owner", 1)))[0]; got != CodeRunsFull {
		t.Errorf("run %d: got %v", RunsMax+1, got)
	}
	if !slices.IsSorted(c.host.Runs()) || len(c.host.Runs()) != RunsMax {
		t.Errorf("runs are %q", c.host.Runs())
	}
}

func TestTimeNeverGoesBack(t *testing.T) {
	c := newChain(t)
	for _, b := range []struct{ give, want uint64 }{
		{genesisMs - 5, genesisMs}, {genesisMs + 10, genesisMs + 10}, {0, genesisMs + 10}, {genesisMs + 11, genesisMs + 11},
	} {
		c.host.Begin(Block{TimeMs: b.give})
		if c.host.Commit(); c.host.TimeMs() != b.want {
			t.Errorf("block of time %d: the ledger's time is %d, want %d", b.give, c.host.TimeMs(), b.want)
		}
	}
}

func TestSeedsDifferByRunAndBlock(t *testing.T) {
	c := newChain(t)
	var seen []wire.Hash
	for _, b := range []Block{{Height: 1}, {Height: 2}, {Height: 2, Seed: wire.Sum("entrain/test/seed")}} {
		c.host.Begin(b)
		for _, name := range []string{"one", "two"} {
			seed := c.host.env(&run{name: name}, key.Public{}).Seed
			if slices.Contains(seen, seed) {
				t.Errorf("run %q has a seed in block %+v that was there before", name, b)
			}
			seen = append(seen, seed)
		}
	}
}

func TestTransactionsOfOneKeyMayOvertake(t *testing.T) {
	c := newChain(t)
	sign := func(nonce uint64) []byte {
		return c.sign("ann", Tx{Chain: testChain, Nonce: nonce, ExpiresMs: genesisMs + 60_000, Body: Announce{Run: "none"}})
	}
	order := []uint64{50, 40, 60, 45, 44, 43, 42, 41} // as many as are remembered
	for _, n := range order {
		if got := c.block(sign(n))[0]; got != CodeUnknownRun {
			t.Errorf("nonce %d: got %v", n, got)
		}
	}
	for _, n := range append(order, 39, 1) {
		if got := c.block(sign(n))[0]; got != CodeReplayed {
			t.Errorf("nonce %d again, or older than all: got %v", n, got)
		}
	}
	if got := c.block(sign(46))[0]; got != CodeUnknownRun {
		t.Errorf("nonce 46: got %v", got)
	}
	if got := c.block(sign(40))[0]; got != CodeReplayed {
		t.Errorf("nonce 40, which was forgotten: got %v", got)
	}
}

// TestNothingCountsTwice sends transactions of few keys in any order, again and again, while time
// passes and the host is saved and restored.
func TestNothingCountsTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newChain(t)
		var sent [][]byte
		taken := map[wire.Hash]bool{}
		for range rapid.IntRange(1, 60).Draw(rt, "blocks") {
			var txs [][]byte
			for range rapid.IntRange(0, 4).Draw(rt, "transactions") {
				if len(sent) > 0 && rapid.Bool().Draw(rt, "again") {
					txs = append(txs, rapid.SampledFrom(sent).Draw(rt, "which"))
					continue
				}
				life := rapid.Uint64Range(1, TxLifetimeMs).Draw(rt, "life")
				tx := c.sign(rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "who"), Tx{
					Chain: testChain, Nonce: rapid.Uint64Range(0, 30).Draw(rt, "nonce"),
					ExpiresMs: c.host.TimeMs() + life, Body: Announce{Run: "none"},
				})
				txs, sent = append(txs, tx), append(sent, tx)
			}
			pause := rapid.SampledFrom([]uint64{0, 200, 60_000, TxLifetimeMs}).Draw(rt, "pause")
			for i, code := range c.blockAfter(pause, txs...) {
				tx, err := ParseTx(txs[i])
				if err != nil {
					rt.Fatal(err)
				}
				if code.Taken() && taken[tx.ID] {
					rt.Fatalf("nonce %d counted twice", tx.Nonce)
				}
				taken[tx.ID] = taken[tx.ID] || code.Taken()
			}
			if rapid.IntRange(0, 5).Draw(rt, "restart") == 0 {
				h, err := ParseHost(c.host.Append(nil), Rules{})
				if err != nil {
					rt.Fatal(err)
				}
				c.host = h
			}
		}
	})
}

func TestIdleKeysAreForgotten(t *testing.T) {
	c := newChain(t)
	b := c.sign("ann", Tx{Chain: testChain, Nonce: 1, ExpiresMs: genesisMs + 5000, Body: Announce{Run: "none"}})
	c.block(b)
	empty := newChain(t).host.accounts.sum()
	c.blockAfter(4799)
	if len(c.host.accounts.list) != 1 {
		t.Error("forgotten too early")
	}
	if got := c.blockAfter(1, b)[0]; len(c.host.accounts.list) != 0 || got != CodeExpired || c.host.accounts.sum() != empty {
		t.Errorf("%d keys remembered, got %v", len(c.host.accounts.list), got)
	}
}

func TestAddressesOfMembersAreKept(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	for _, who := range []string{"ann", "bob"} {
		c.accept(c.tx(who, send("demo", coordinator.Join{})), c.tx(who, Announce{Run: "demo", Addrs: []string{"/" + who}}))
	}
	for i := range PendingPeersMax + 10 {
		c.accept(c.tx(fmt.Sprint("stranger ", i), Announce{Run: "demo", Addrs: []string{"/x"}}))
	}
	has := func(who string) bool {
		list, _ := c.host.Peers("demo")
		return slices.ContainsFunc(list, func(p Peer) bool { return p.Key == public(who) })
	}
	list, _ := c.host.Peers("demo")
	if len(list) != PendingPeersMax+2 || !has("ann") || !has("bob") || has("stranger 9") || !has("stranger 10") {
		t.Errorf("%d peers, ann %v, bob %v, the tenth stranger %v, the next %v",
			len(list), has("ann"), has("bob"), has("stranger 9"), has("stranger 10"))
	}
	c.accept(c.tx("ann", Announce{Run: "demo", Addrs: []string{"/new", "/newer"}}), c.tx("bob", Announce{Run: "demo"}))
	list, _ = c.host.Peers("demo")
	i := slices.IndexFunc(list, func(p Peer) bool { return p.Key == public("ann") })
	if has("bob") || i < 0 || !slices.Equal(list[i].Addrs, []string{"/new", "/newer"}) {
		t.Errorf("bob is there: %v; ann is at %v", has("bob"), list[i].Addrs)
	}
}

// Strangers' keys cost nothing. When they have filled the table of accounts, keys that the chain
// knows still find a place in it: a member that could not defend itself would lose its stake.
func TestStrangersDoNotKeepMembersOut(t *testing.T) {
	c := newBankChain(t, 1000, "rich")
	c.accept(c.tx("owner", createRun("demo", "owner", 4)), c.tx("ann", send("demo", coordinator.Join{})))
	c.accept(c.tx("owner", Admit{Run: "demo", Listed: true, Add: keysOf("ann", "listed")}))
	c.blockAfter(TxLifetimeMs + blockMs) // the chain has forgotten everybody's transactions
	c.fill(AccountsMax)
	c.want(CodeAccountsFull, c.tx("eve", send("demo", coordinator.Tick{})))
	c.want(CodeAccountsFull, c.tx("ann", send("none", coordinator.Tick{}))) // a member, but not there
	c.want(CodeOK, c.tx("ann", send("demo", coordinator.Withdraw{})))
	c.want(CodeOK, c.tx("owner", send("demo", coordinator.Pause{})))
	c.want(CodeOK, c.tx("listed", Announce{Run: "demo"}))
	c.want(CodeOK, c.tx("rich", Transfer{To: public("bob"), Amount: 1}))
	again, err := ParseHost(c.host.Append(nil), Rules{})
	if err != nil || again.Hash() != c.host.Hash() {
		t.Errorf("the state with a full table does not survive its encoding: %v", err)
	}
}

// fill fills the table of accounts with strangers.
func (c *chain) fill(n int) {
	have := len(c.host.accounts.list)
	for i := range n {
		stranger := key.Public(wire.Sum("stranger", wire.AppendU32(nil, uint32(have+i))))
		c.host.accounts.list = append(c.host.accounts.list, &account{key: stranger, expiresMs: c.host.TimeMs() + TxLifetimeMs, recent: []used{{nonce: 1}}})
	}
	slices.SortFunc(c.host.accounts.list, func(a, b *account) int { return a.key.Compare(b.key) })
}

// Keys cost nothing, so those that the chain does not know work for a place when many are taken.
func TestStrangersWorkWhenTheTableFills(t *testing.T) {
	c := newBankChain(t, 1000, "rich")
	c.accept(c.tx("owner", createRun("demo", "owner", 4)))
	c.fill(AccountsMax/4 - 2)
	c.want(CodeUnknownRun, c.tx("eve", send("none", coordinator.Tick{}))) // free still
	c.fill(AccountsMax / 4)
	if bits := c.host.accounts.workBits(); bits != 10 {
		t.Fatalf("half full, %d bits", bits)
	}
	tx := Tx{Chain: testChain, Nonce: 1 << 20, ExpiresMs: c.host.TimeMs() + 60_000, Body: send("demo", coordinator.Tick{})}
	lazy := tx
	for lazy.ToWork(privateKey("eva"), 0); lazy.Work() >= 10; lazy.Nonce++ {
	}
	c.want(CodeWork, c.sign("eva", lazy))
	c.want(CodeOK, c.tx("rich", send("demo", coordinator.Tick{}))) // it has tokens
	c.want(CodeOK, c.tx("eve", send("demo", coordinator.Tick{})))  // it has an account
	tx.ToWork(privateKey("eva"), 10)
	c.want(CodeOK, c.sign("eva", tx))
	c.fill(AccountsMax/2 - 8)
	if bits := c.host.accounts.workBits(); bits != WorkBitsMax {
		t.Errorf("full, %d bits", bits)
	}
}

// The most memory that the table of accounts takes, printed: what strangers can fill, and with
// every key that has tokens or is a member.
func TestMemoryOfAFullTable(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	a := accounts{}
	for i := range AccountsMax {
		k := key.Public{byte(i >> 8), byte(i)}
		for nonce := range uint64(NoncesKept + 1) {
			a.take(&Tx{Sender: k, Nonce: nonce, ExpiresMs: 1}, CodeOK)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapAlloc - before.HeapAlloc) / AccountsMax
	t.Logf("%d bytes an account; strangers %d MB, all that find a place %d MB", each, each*AccountsMax>>20, each*accountsAllMax>>20)
	if n := len(a.list); n != AccountsMax || each > 512 {
		t.Errorf("%d accounts of %d bytes", n, each)
	}
}

// busy is a host with something of everything.
func busy(t testing.TB) *chain {
	c := newBankChain(t, 1000, "ann", "bob", "op", "wed")
	c.accept(c.tx("owner", createRun("demo", "owner", 4)), c.tx("owner", createRun("another", "owner", 2)))
	for _, who := range []string{"ann", "bob"} {
		c.accept(c.tx(who, send("demo", coordinator.Join{})), c.tx(who, Announce{Run: "demo", Addrs: []string{"/" + who}}))
	}
	c.block(c.tx("cat", send("none", coordinator.Join{})))
	c.accept(
		c.tx("op", CreatePool{Runs: []string{"demo"}, Name: "pool", CommissionBP: 777, Least: 2, Workers: []key.Public{public("wed")}}), c.tx("op", CreatePool{Runs: []string{"demo"}, Name: "idle"}),
		c.tx("op", Lend{Pool: "pool", Amount: 200}), c.tx("ann", Lend{Pool: "pool", Amount: 301}), c.tx("bob", Lend{Pool: "idle", Amount: 7}),
		c.tx("wed", bring(400, "pool", coordinator.Join{})), c.tx("ann", bring(10, "", coordinator.Fund{})),
		c.tx("bob", Transfer{To: PoolAddress(testChain, "pool"), Amount: 503}), c.tx("ann", Collect{Pool: "pool"}),
	)
	return c
}

func TestSavedHostGoesOnAlike(t *testing.T) {
	c := busy(t)
	saved := c.host.Append(nil)
	h, err := ParseHost(saved, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(h.Append(nil), saved) || h.Hash() != c.host.Hash() || h.Height() != c.host.Height() || h.TimeMs() != c.host.TimeMs() {
		t.Error("the host that was read differs from the one that was saved")
	}
	restored := &chain{t: t, host: h, height: c.height, nonce: c.nonce}
	for _, c := range []*chain{c, restored} {
		c.block(c.tx("dan", send("demo", coordinator.Join{})), c.tx("bob", Announce{Run: "demo"}))
		c.block(c.tx("op", Collect{Pool: "pool"}), c.tx("wed", bring(0, "", coordinator.Withdraw{})), c.tx("bob", Transfer{To: public("cat"), Amount: 9}))
		c.accept(c.tx("bob", ClaimFor{Run: "demo", Member: public("wed")}))
		c.blockAfter(700_000)
	}
	if !bytes.Equal(restored.host.Append(nil), c.host.Append(nil)) || restored.host.Hash() != c.host.Hash() {
		t.Error("the same blocks lead elsewhere")
	}
}

func TestTruncatedHostIsRefused(t *testing.T) {
	saved := busy(t).host.Append(nil)
	for n := 0; n < len(saved); n += 1 + n/200 {
		if _, err := ParseHost(saved[:n], Rules{}); err == nil {
			t.Fatalf("the first %d of %d bytes are read", n, len(saved))
		}
	}
	if _, err := ParseHost(append(saved, 0), Rules{}); err == nil {
		t.Error("a trailing byte is read")
	}
	saved[0]++
	if _, err := ParseHost(saved, Rules{}); err == nil {
		t.Error("another version is read")
	}
}

func FuzzParseHost(f *testing.F) {
	f.Add(busy(f).host.Append(nil))
	f.Add(newChain(f).host.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHost(b, Rules{})
		if err != nil {
			return
		}
		if again := h.Append(nil); !bytes.Equal(again, b) {
			t.Errorf("%x\nparses but re-encodes as\n%x", b, again)
		}
		c := &chain{t: t, host: h, height: h.Height()}
		if c.height < 1<<63 && h.TimeMs() < 1<<60 {
			c.block(c.tx("ann", Announce{Run: "demo"})) // whatever it is, it goes on
		}
	})
}
