package host

import (
	"bytes"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

const (
	testChain = "test-chain"
	genesisMs = 1_800_000_000_000
	blockMs   = 200
)

var testSpec = []byte("name = \"demo\"\n")

func privateKey(name string) key.Private {
	return key.FromSeed(wire.Sum("entrain/test/key", []byte(name)))
}

func public(name string) key.Public { return privateKey(name).Public() }

// chain drives a host block by block.
type chain struct {
	t      testing.TB
	host   *Host
	height uint64
	nonce  uint64
}

func newChain(t testing.TB, creators ...key.Public) *chain {
	t.Helper()
	h, err := NewHost(Genesis{Chain: testChain, TimeMs: genesisMs, Creators: creators}, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return &chain{t: t, host: h}
}

// tx signs a body with the next nonce, to expire a minute from now.
func (c *chain) tx(who string, body Body) []byte {
	c.nonce++
	return c.sign(who, Tx{Chain: testChain, Nonce: c.nonce, ExpiresMs: c.host.TimeMs() + 60_000, Body: body})
}

func (c *chain) sign(who string, tx Tx) []byte {
	c.t.Helper()
	b, err := tx.Sign(privateKey(who))
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// block makes a block and returns the code of each transaction.
func (c *chain) block(txs ...[]byte) []Code {
	return c.blockAfter(blockMs, txs...)
}

func (c *chain) blockAfter(ms uint64, txs ...[]byte) []Code {
	c.height++
	c.host.Begin(Block{Height: c.height, TimeMs: c.host.TimeMs() + ms, Seed: wire.Sum("entrain/test/seed", wire.AppendU64(nil, c.height))})
	var codes []Code
	for _, tx := range txs {
		codes = append(codes, CodeOf(c.host.Deliver(tx)))
	}
	if got, again := c.host.Commit(), c.host.Hash(); got != again {
		c.t.Errorf("Commit returns %v, Hash then %v", got, again)
	}
	return codes
}

// accept makes a block of transactions that must all be accepted.
func (c *chain) accept(txs ...[]byte) {
	c.t.Helper()
	for i, code := range c.block(txs...) {
		if code != CodeOK {
			c.t.Fatalf("transaction %d: %v", i, code)
		}
	}
}

func createRun(name, owner string, members uint32) CreateRun {
	return CreateRun{
		Limits: coordinator.Limits{Members: members, Witnesses: 4},
		Config: coordinator.Config{
			Name: name, MinMembers: 1, StartMembers: 1,
			WarmupMs: 600_000, RoundTrainMs: 10_000, RoundWitnessMs: 10_000, CooldownMs: 10_000, EpochMs: 600_000,
			TotalSteps: 100, BatchStart: 8, BatchEnd: 8, SequenceTokens: 128, MissedMax: 3,
			ModelHash: wire.Sum("entrain/test/model"), SpecHash: SpecHash(testSpec), Owner: public(owner),
		},
		Spec: testSpec,
	}
}

func send(run string, m coordinator.Message) RunMessage {
	return RunMessage{Run: run, Message: coordinator.Append(nil, m)}
}

func TestNamesOfRunsAndChains(t *testing.T) {
	for name, want := range map[string]bool{
		"demo": true, "a": true, "0-1": true, "a234567890123456789012345678901": true, "a2345678901234567890123456789012": true,
		"": false, "-a": false, "a-": false, "A": false, "a b": false, "a/b": false, "ü": false, "a.b": false, "a_b": false,
		"a23456789012345678901234567890123": false,
	} {
		if got := RunNameValid(name); got != want {
			t.Errorf("RunNameValid(%q) is %v", name, got)
		}
	}
	if long := "a2345678901234567890123456789012345678901234567890"; !ChainIDValid(long) || ChainIDValid(long+"1") || ChainIDValid("") || ChainIDValid("a-") {
		t.Error("chain ids are judged wrongly")
	}
}

func TestEveryCodeHasAText(t *testing.T) {
	for c := range Code(len(codeTexts())) {
		named := c.String() != (Code(200)+c).String() && c.String()[:4] != "code"
		if used := c <= CodeWork || c >= CodeBadName; named != used {
			t.Errorf("code %d says %q", c, c)
		}
	}
	e := &TxError{Code: CodeCoordinator + Code(coordinator.ErrFull)}
	if want := coordinator.ErrFull.Error(); e.Error() != want {
		t.Errorf("got %q, want %q", e, want)
	}
	if CodeOK.Err() != nil || CodeOf(nil) != CodeOK || CodeOf(CodeExpired.Err()) != CodeExpired {
		t.Error("codes and errors do not turn into each other")
	}
}

func TestTransactionSurvivesItsEncoding(t *testing.T) {
	c := newChain(t)
	for _, body := range []Body{
		createRun("demo", "owner", 16),
		Announce{Run: "demo"},
		Announce{Run: "demo", Addrs: []string{"/ip4/1.2.3.4/tcp/5", "/dns/x"}},
		send("demo", coordinator.Join{Speed: 3}),
		RunMessage{Run: "demo", Value: 7, From: "pool", Message: coordinator.Append(nil, coordinator.Join{Payee: public("bob")})},
		Transfer{To: public("bob"), Amount: 1 << 40},
		CreatePool{Runs: []string{"demo"}, Name: "pool", CommissionBP: 1250, OwnBP: 5000, Least: 3, Workers: []key.Public{{1}, {2}}},
		Lend{Pool: "pool", Amount: 5},
		Collect{Pool: "pool"},
		ClosePool{Pool: "pool"},
		ClaimFor{Run: "demo", Member: public("bob")},
	} {
		b := c.tx("ann", body)
		tx, err := ParseTx(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Verify(testChain); err != nil {
			t.Error(err)
		}
		again := append(tx.unsigned(), tx.Signature[:]...)
		if !bytes.Equal(again, b) || tx.Sender != public("ann") {
			t.Errorf("%T is encoded as %x, then as %x", body, b, again)
		}
	}
}

// TestTransactionBytes pins the example in the package comment.
func TestTransactionBytes(t *testing.T) {
	tx := Tx{Chain: "c", Nonce: 0x0102, ExpiresMs: 0x0304, Body: Announce{Run: "a"}}
	b, err := tx.Sign(privateKey("ann"))
	if err != nil {
		t.Fatal(err)
	}
	ann := public("ann")
	want := append([]byte{1, 0, 0, 0, 'c'}, ann[:]...)
	want = append(want, 2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 'a', 0)
	if got := b[:len(b)-64]; !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func TestSignRefusesWhatNoLedgerTakes(t *testing.T) {
	long := make([]byte, SpecBytesMax+1)
	tooMany := make([]string, AddrsMax+1)
	for i := range tooMany {
		tooMany[i] = "/a"
	}
	big := createRun("demo", "owner", 16)
	big.Spec = long
	limits := createRun("demo", "owner", 16)
	limits.Limits.Members = coordinator.MembersMax + 1
	for name, body := range map[string]Body{
		"spec":         big,
		"limits":       limits,
		"message":      RunMessage{Run: "demo", Message: make([]byte, MessageBytesMax+1)},
		"run name":     Announce{Run: string(long[:RunNameBytesMax+1])},
		"addresses":    Announce{Run: "demo", Addrs: tooMany},
		"long address": Announce{Run: "demo", Addrs: []string{string(bytes.Repeat([]byte("a"), AddrBytesMax+1))}},
		"bad address":  Announce{Run: "demo", Addrs: []string{"a\x1b[31m"}},
		"no address":   Announce{Run: "demo", Addrs: []string{""}},
		"pool name":    Collect{Pool: string(long[:RunNameBytesMax+1])},
		"runs of pool": CreatePool{Name: "pool", Runs: make([]string, PoolRunsMax+1)},
		"workers":      CreatePool{Runs: []string{"demo"}, Name: "pool", Workers: make([]key.Public, WorkersMax+1)},
	} {
		if b, err := (Tx{Chain: testChain, Body: body}).Sign(privateKey("ann")); err == nil {
			t.Errorf("%s: signed as %d bytes", name, len(b))
		}
	}
}

func FuzzParseTx(f *testing.F) {
	c := newChain(f)
	f.Add(c.tx("ann", createRun("demo", "owner", 16)))
	f.Add(c.tx("ann", Announce{Run: "demo", Addrs: []string{"/ip4/1.2.3.4/tcp/5"}}))
	f.Add(c.tx("ann", send("demo", coordinator.Join{})))
	f.Add(c.tx("ann", RunMessage{Run: "demo", Value: 7, From: "pool", Message: coordinator.Append(nil, coordinator.Deposit{})}))
	f.Add(c.tx("ann", Transfer{To: public("bob"), Amount: 1 << 40}))
	f.Add(c.tx("ann", CreatePool{Runs: []string{"demo"}, Name: "pool", CommissionBP: 1250, Workers: []key.Public{{1}, {2}}}))
	f.Add(c.tx("ann", Lend{Pool: "pool", Amount: 5}))
	f.Add(c.tx("ann", ClaimFor{Run: "demo", Member: public("bob")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		tx, err := ParseTx(b)
		if err != nil {
			if CodeOf(err) == CodeOK || CodeOf(err).Taken() {
				t.Errorf("refused with code %v", CodeOf(err))
			}
			return
		}
		if again := append(tx.unsigned(), tx.Signature[:]...); !bytes.Equal(again, b) {
			t.Errorf("%x parses but re-encodes as %x", b, again)
		}
	})
}
