package host

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// newBankChain makes a chain on which each of the named has so many tokens.
func newBankChain(t testing.TB, amount uint64, who ...string) *chain {
	t.Helper()
	g := Genesis{Chain: testChain, TimeMs: genesisMs, Creators: []key.Public{public("owner")}} // who pay no deposits
	for _, name := range who {
		g.Accounts = append(g.Accounts, Allocation{Key: public(name), Amount: amount})
	}
	slices.SortFunc(g.Accounts, func(a, b Allocation) int { return a.Key.Compare(b.Key) })
	h, err := NewHost(g, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return &chain{t: t, host: h}
}

func (c *chain) want(code Code, tx []byte) {
	c.t.Helper()
	if got := c.block(tx)[0]; got != code {
		c.t.Errorf("got %q, want %q", got, code)
	}
}

func (c *chain) holds(who string, tokens uint64) {
	c.t.Helper()
	if got := c.host.Balance(public(who)); got != tokens {
		c.t.Errorf("%s has %d tokens, want %d", who, got, tokens)
	}
}

func TestTransfers(t *testing.T) {
	c := newBankChain(t, 1<<32, "ann", "bob") // so a purse holds 128 at least
	supply := uint64(2 << 32)
	if c.host.Supply() != supply || c.host.bank.floor() != 128 {
		t.Fatalf("supply %d, least %d", c.host.Supply(), c.host.bank.floor())
	}
	to := func(who string, n uint64) Transfer { return Transfer{To: public(who), Amount: n} }
	for _, step := range []struct {
		from string
		body Transfer
		want Code
	}{
		{"ann", to("bob", 0), CodeAmount},
		{"ann", to("bob", 1), CodeOK},
		{"ann", to("bob", 1<<32), CodeFunds},
		{"ann", to("bob", math.MaxUint64), CodeFunds},
		{"cat", to("bob", 1), CodeFunds},
		{"ann", to("cat", 127), CodeDust},
		{"ann", to("cat", 128), CodeOK},
		{"ann", to("cat", 1), CodeOK},
		{"cat", to("ann", 2), CodeDust}, // 127 would be left
		{"cat", to("ann", 1), CodeOK},
		{"cat", to("cat", 128), CodeOK},
		{"cat", to("ann", 128), CodeOK},
		{"cat", to("ann", 1), CodeFunds},
		{"ann", Transfer{Amount: 500}, CodeAmount},
		{"ann", to("bob", 1<<32-1), CodeOK},
	} {
		before := c.host.Balance(public(step.from))
		if got := c.block(c.tx(step.from, step.body))[0]; got != step.want {
			t.Errorf("%s pays %d: got %q, want %q", step.from, step.body.Amount, got, step.want)
		}
		if after := c.host.Balance(public(step.from)); step.want != CodeOK && after != before {
			t.Errorf("%s pays %d, which is refused: has %d, and had %d", step.from, step.body.Amount, after, before)
		}
	}
	c.holds("ann", 0)
	c.holds("bob", supply)
	if n := len(c.host.bank.purses); n != 1 {
		t.Errorf("%d purses", n)
	}
}

func TestGenesisWithTokens(t *testing.T) {
	a, b := public("ann"), public("bob")
	if a.Compare(b) > 0 {
		a, b = b, a
	}
	for name, accounts := range map[string][]Allocation{
		"order":    {{b, 1}, {a, 1}},
		"twice":    {{a, 1}, {a, 1}},
		"nothing":  {{a, 0}},
		"nobody":   {{key.Public{}, 5}},
		"too much": {{a, SupplyMax}, {b, 1}},
		"overflow": {{a, 1}, {b, math.MaxUint64}},
		"too many": make([]Allocation, AllocationsMax+1),
	} {
		if _, err := NewHost(Genesis{Chain: testChain, Accounts: accounts}, Rules{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	one, err := NewHost(Genesis{Chain: testChain, Accounts: []Allocation{{a, 1}, {b, SupplyMax - 1}}}, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewHost(Genesis{Chain: testChain, Accounts: []Allocation{{a, 2}, {b, SupplyMax - 2}}}, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	if one.Supply() != SupplyMax || one.Hash() == other.Hash() {
		t.Error("the genesis' tokens do not show")
	}
}

func TestVerificationNeedsAReferee(t *testing.T) {
	without := newChain(t)
	without.want(CodeNoReferee, without.tx("owner", verified("demo", "owner")))
	without.want(CodeOK, without.tx("owner", createRun("demo", "owner", 4)))

	var asked [][]byte
	referees := func(spec []byte) (dispute.Referee, error) {
		asked = append(asked, bytes.Clone(spec))
		if len(asked) == 1 {
			return nil, errors.New(strings.Repeat("x", 1<<17)) // quotes what a stranger wrote
		}
		return fakeReferee{}, nil
	}
	h, err := NewHost(Genesis{Chain: testChain, TimeMs: genesisMs}, Rules{Referees: referees})
	if err != nil {
		t.Fatal(err)
	}
	c := &chain{t: t, host: h}
	if err := c.host.Deliver(c.tx("owner", verified("demo", "owner"))); CodeOf(err) != CodeNoReferee || len(err.Error()) > refusalMax+200 {
		t.Errorf("refused as %.80v...", err)
	}
	c.want(CodeOK, c.tx("owner", createRun("plain", "owner", 4)))
	c.want(CodeOK, c.tx("owner", verified("demo", "owner")))
	if len(asked) != 2 || !bytes.Equal(asked[1], testSpec) {
		t.Errorf("referees were made of %q", asked)
	}
	saved := h.Append(nil)
	if _, err := ParseHost(saved, Rules{}); err == nil {
		t.Error("a run with verification goes on without a referee")
	}
	again, err := ParseHost(saved, Rules{Referees: referees})
	if err != nil || again.Hash() != h.Hash() || again.runs[0].referee == nil || again.runs[1].referee != nil {
		t.Errorf("read again: %v", err)
	}
}

// TestABlockMakesFewReferees fills a block with runs whose specifications are refused after much work, for which nobody pays.
func TestABlockMakesFewReferees(t *testing.T) {
	made := 0
	h, err := NewHost(Genesis{Chain: testChain, TimeMs: genesisMs}, Rules{Referees: func([]byte) (dispute.Referee, error) {
		made++
		return nil, errors.New("a step has too many operations")
	}})
	if err != nil {
		t.Fatal(err)
	}
	c := &chain{t: t, host: h}
	var txs [][]byte
	for i := range 100 {
		who := fmt.Sprint("free", i)
		txs = append(txs, c.tx(who, verified("demo", who)))
	}
	for i, code := range c.block(append(txs, c.tx("owner", createRun("plain", "owner", 4)))...) {
		want := CodeRunsFull
		switch {
		case i < refereesMax:
			want = CodeNoReferee
		case i == len(txs):
			want = CodeOK
		}
		if code != want {
			t.Errorf("transaction %d: %q, want %q", i, code, want)
		}
	}
	if made != refereesMax {
		t.Errorf("%d referees were made", made)
	}
	c.want(CodeNoReferee, c.tx("owner", verified("demo", "owner"))) // in the next block
}

// verified returns a run whose results are checked.
func verified(name, owner string) CreateRun {
	r := createRun(name, owner, 4)
	r.Config.VerificationPercent, r.Config.VerifyMs, r.Config.DisputeMs = 5, 1000, 1000
	r.Config.StateHash = wire.Sum("entrain/test/state")
	return r
}

type fakeReferee struct{ dispute.Referee }

// TestATransactionCannotMakeTokens sends thousands of transactions of all kinds, most of them wrong
// in some way, and counts after each (the host itself does, and panics). What each lender of a pool
// was paid is compared with exact fractions.
func TestATransactionCannotMakeTokens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		people := []string{"ann", "bob", "cat", "dan"}
		whole := rapid.SampledFrom([]uint64{100, 1 << 20, 1 << 32, SupplyMax / 3}).Draw(rt, "each")
		c := newBankChain(t, whole, people[:3]...)
		run := createRun("demo", "owner", 3)
		run.Config.Stake, run.Config.Rate, run.Config.UnbondMs = rapid.Uint64Range(0, 5).Draw(rt, "stake"), 1, 1000
		name, made := run.Config.Name, 0
		supply := c.host.Supply()
		target := func() key.Public {
			if rapid.IntRange(0, 5).Draw(rt, "to a pool") == 0 {
				return PoolAddress(testChain, rapid.SampledFrom([]string{"one", "two"}).Draw(rt, "address"))
			}
			return public(rapid.SampledFrom(people).Draw(rt, "to"))
		}
		amount := rapid.OneOf(
			rapid.Uint64Range(0, 20), rapid.Uint64Range(0, whole/7), rapid.SampledFrom([]uint64{whole, whole - 1, math.MaxUint64, 1 << 63}),
		)
		pool := rapid.SampledFrom([]string{"one", "two", "three"})
		for range rapid.IntRange(20, 120).Draw(rt, "blocks") {
			if _, ok := c.host.View(name); !ok { // the chain closes a run in which nothing changes
				name, made = fmt.Sprint("demo", made), made+1
				run.Config.Name = name
				c.accept(c.tx("owner", run))
			}
			who := rapid.SampledFrom(people).Draw(rt, "who")
			var body Body
			switch rapid.IntRange(0, 9).Draw(rt, "kind") {
			case 0, 1:
				body = Transfer{To: target(), Amount: amount.Draw(rt, "amount")}
			case 2:
				body = CreatePool{
					Runs: []string{name}, Name: pool.Draw(rt, "pool"), CommissionBP: uint16(rapid.IntRange(0, wholeBP).Draw(rt, "commission")),
					OwnBP: uint16(rapid.SampledFrom([]int{0, 0, 3000}).Draw(rt, "own")), Least: rapid.Uint64Range(0, 3).Draw(rt, "least"),
					Workers: slices.Clone([]key.Public{public("dan")}[:rapid.IntRange(0, 1).Draw(rt, "workers")]),
				}
			case 3, 4:
				body = Lend{Pool: pool.Draw(rt, "pool"), Amount: amount.Draw(rt, "amount")}
			case 5:
				body = Collect{Pool: pool.Draw(rt, "pool")}
			case 6:
				body = ClosePool{Pool: pool.Draw(rt, "pool")}
			case 7:
				body = ClaimFor{Run: name, Member: target()}
			case 8:
				body = RunMessage{
					Run: name, Value: amount.Draw(rt, "amount"), From: rapid.SampledFrom([]string{"", "one", "two"}).Draw(rt, "from"),
					Message: coordinator.Append(nil, rapid.SampledFrom([]coordinator.Message{
						coordinator.Join{}, coordinator.Join{Payee: public("bob")}, coordinator.Deposit{Member: public(who)},
						coordinator.Deposit{Member: public("dan")}, coordinator.Fund{}, coordinator.Claim{}, coordinator.Withdraw{}, coordinator.Tick{},
						c.equivocation(name, rapid.SampledFrom(people).Draw(rt, "convict")),
					}).Draw(rt, "message")),
				}
			default: // hand a pool an income, as runs do
				body = Transfer{To: PoolAddress(testChain, "one"), Amount: amount.Draw(rt, "amount")}
			}
			before, closed := c.host.Append(nil), len(c.host.archive.list)
			code := c.blockAfter(rapid.SampledFrom([]uint64{200, 200, 60_000, PoolQuietMs}).Draw(rt, "pause"), c.tx(who, body))[0]
			if code != CodeOK && len(c.host.archive.list) == closed && !bytes.Equal(c.host.bank.append(nil), bankOf(rt, before)) {
				rt.Fatalf("%+v of %s, which is refused with %q, changes purses or pools", body, who, code)
			}
			if n := total(c.host); n.Cmp(new(big.Int).SetUint64(supply)) != 0 {
				rt.Fatalf("after %+v there are %v tokens, not %d", body, n, supply)
			}
			checkPools(rt, c.host)
			if rapid.IntRange(0, 9).Draw(rt, "restart") == 0 {
				h, err := ParseHost(c.host.Append(nil), Rules{})
				if err != nil {
					rt.Fatal(err)
				}
				if h.Hash() != c.host.Hash() {
					rt.Fatal("the state that was read has another hash")
				}
				c.host = h
			}
		}
	})
}

// bankOf returns the bytes of purses and pools in those of a host.
func bankOf(t *rapid.T, b []byte) []byte {
	h, err := ParseHost(b, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return h.bank.append(nil)
}

// total counts all tokens one by one, without any sum that the host keeps.
func total(h *Host) *big.Int {
	sum := new(big.Int)
	add := func(n uint64) { sum.Add(sum, new(big.Int).SetUint64(n)) }
	for _, p := range h.bank.purses {
		add(p.tokens)
	}
	for _, p := range h.bank.pools {
		add(p.tokens())
	}
	for _, r := range h.runs {
		add(r.state.Escrow())
	}
	return sum
}

// checkPools checks what pools promise.
func checkPools(t *rapid.T, h *Host) {
	for _, p := range h.bank.pools {
		if !p.consistent() {
			t.Fatalf("pool %+v contradicts itself", p)
		}
		ever := new(big.Int).SetUint64(p.shared.Hi)
		ever.Lsh(ever, 64).Add(ever, new(big.Int).SetUint64(p.shared.Lo))
		for _, l := range p.lenders {
			// What a lender was paid and is due is its part of all, rounded down once.
			part := new(big.Int).Mul(ever, new(big.Int).SetUint64(l.lent))
			part.Div(part, new(big.Int).SetUint64(p.lent))
			paid := new(big.Int).SetUint64(l.paid.Hi)
			paid.Lsh(paid, 64).Add(paid, new(big.Int).SetUint64(l.paid.Lo))
			if paid.Add(paid, new(big.Int).SetUint64(p.share(l))); paid.Cmp(part) != 0 {
				t.Fatalf("pool %q: a lender gets %v of %v, want %v", p.name, paid, ever, part)
			}
		}
	}
}

// What was signed for a chain counts on one that is founded again under its name, until it expires.
func TestWhatCountsOnAChainFoundedAgain(t *testing.T) {
	first := newBankChain(t, 1<<32, "ann", "bob", "owner")
	g := first.host.genesis
	g.TimeMs += 60_000
	h, err := NewHost(g, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	again := &chain{t: t, host: h, nonce: 100}
	long := func(who string, body Body) []byte { // as ledger.Signer does
		first.nonce++
		return first.sign(who, Tx{Chain: testChain, Nonce: first.nonce, ExpiresMs: first.host.TimeMs() + TxLifetimeMs/2, Body: body})
	}
	transfer := long("ann", Transfer{To: public("bob"), Amount: 1000})
	late := long("ann", Transfer{To: public("bob"), Amount: 1001})
	join := long("ann", RunMessage{Run: "demo", Value: 500, Message: coordinator.Append(nil, coordinator.Join{Payee: public("ann")})})
	certificate := Delegate{Run: "demo", Certificate: NewCertificate(privateKey("bob"), testChain, "demo", public("node"), g.TimeMs+DelegationMsMax/2)}
	for _, c := range []*chain{first, again} {
		c.accept(c.tx("owner", createRun("demo", "owner", 16)))
		c.accept(transfer, join)
		c.holds("ann", 1<<32-1500)
		c.want(CodeReplayed, transfer)
	}

	runs := [2]wire.Hash{}
	for i, c := range []*chain{first, again} {
		r, err := c.host.open("demo")
		if err != nil {
			t.Fatal(err)
		}
		runs[i] = r.state.ID()
	}
	if runs[0] == runs[1] {
		t.Error("a commitment to a result on the first chain would be one on the second")
	}

	again.blockAfter(TxLifetimeMs)
	again.want(CodeExpired, late)
	again.accept(again.tx("node", certificate))
	again.holds("ann", 1<<32-1500)
}
