package host

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
)

// stakeRun is a run that wants a stake of 100 and pays 2 for a point.
func stakeRun() CreateRun {
	r := createRun("demo", "owner", 16)
	r.Config.Stake, r.Config.Rate, r.Config.UnbondMs = 100, 2, 5000
	return r
}

func bring(value uint64, from string, m coordinator.Message) RunMessage {
	return RunMessage{Run: "demo", Value: value, From: from, Message: coordinator.Append(nil, m)}
}

func (c *chain) member(who string) coordinator.MemberState {
	c.t.Helper()
	v, _ := c.host.View("demo")
	i, ok := v.State.Find(public(who))
	if !ok {
		c.t.Fatalf("%s is not a member", who)
	}
	return v.State.Member(i)
}

func (c *chain) escrow() uint64 {
	v, _ := c.host.View("demo")
	return v.State.Escrow()
}

const (
	codeStake   = CodeCoordinator + Code(coordinator.ErrStake)
	codeValue   = CodeCoordinator + Code(coordinator.ErrValue)
	codeNothing = CodeCoordinator + Code(coordinator.ErrNothing)
)

func TestStakeComesWithTheJoinAndGoesBackAfterwards(t *testing.T) {
	c := newBankChain(t, 1000, "ann", "bob")
	c.accept(c.tx("owner", stakeRun()))
	for _, step := range []struct {
		who  string
		body Body
		want Code
	}{
		{"ann", bring(0, "", coordinator.Join{}), codeStake},
		{"ann", bring(99, "", coordinator.Join{}), codeStake},
		{"ann", bring(1001, "", coordinator.Join{}), CodeFunds},
		{"cat", bring(100, "", coordinator.Join{}), CodeFunds},
		{"ann", bring(100, "", coordinator.Join{Payee: public("cat")}), CodeOK},
		{"ann", bring(5, "", coordinator.Withdraw{}), codeValue},
		{"ann", bring(5, "", coordinator.Tick{}), codeValue},
		{"ann", bring(0, "", coordinator.Fund{}), codeValue},
		{"bob", bring(50, "", coordinator.Deposit{Member: public("ann")}), CodeOK},
		{"bob", bring(50, "", coordinator.Deposit{Member: public("bob")}), CodeCoordinator + Code(coordinator.ErrNoMember)},
		{"bob", bring(70, "", coordinator.Fund{}), CodeOK},
		{"bob", ClaimFor{Run: "demo", Member: public("ann")}, CodeUnknownPool},
		{"ann", bring(0, "", coordinator.Claim{}), codeNothing},
		{"ann", bring(0, "", coordinator.Withdraw{}), CodeOK},
		{"ann", bring(0, "", coordinator.Claim{}), codeNothing},
	} {
		c.want(step.want, c.tx(step.who, step.body))
	}
	c.holds("ann", 900)
	c.holds("bob", 880)
	if c.escrow() != 220 || c.member("ann").Stake != 150 {
		t.Errorf("escrow %d, stake %d", c.escrow(), c.member("ann").Stake)
	}
	c.blockAfter(5000)
	c.want(CodeOK, c.tx("ann", bring(0, "", coordinator.Claim{})))
	c.want(codeNothing, c.tx("ann", bring(0, "", coordinator.Claim{})))
	c.holds("cat", 150)
	if c.escrow() != 70 {
		t.Errorf("escrow %d, want the treasury's 70", c.escrow())
	}
}

// TestAClaimMakesNoTinyPurse claims for a payee who has nothing, on a chain where a purse begins
// with 128 tokens.
func TestAClaimMakesNoTinyPurse(t *testing.T) {
	c := newBankChain(t, 1<<32, "ann", "bob")
	run := stakeRun()
	run.Config.UnbondMs = 0
	c.accept(c.tx("owner", run))
	c.accept(c.tx("ann", bring(127, "", coordinator.Join{Payee: public("cat")})), c.tx("ann", bring(0, "", coordinator.Withdraw{})))
	c.want(CodeDust, c.tx("ann", bring(0, "", coordinator.Claim{})))
	if c.escrow() != 127 {
		t.Errorf("escrow %d", c.escrow())
	}
	c.accept(c.tx("bob", bring(1, "", coordinator.Deposit{Member: public("ann")})), c.tx("ann", bring(0, "", coordinator.Claim{})))
	c.holds("cat", 128)
}

func TestAPoolsTokensOnlyBecomeStakeThatIsPaidToIt(t *testing.T) {
	c := newBankChain(t, 1000, "op", "ann", "bob", "eve")
	c.accept(c.tx("owner", stakeRun()))
	pool := PoolAddress(testChain, "pool")
	terms := CreatePool{Runs: []string{"demo"}, Name: "pool", CommissionBP: 1000, OwnBP: 5000, Least: 10, Workers: []key.Public{public("hand")}}
	for i, step := range []struct {
		who  string
		body Body
		want Code
	}{
		{"op", terms, CodeOK},
		{"op", terms, CodePoolExists},
		{"ann", Lend{Pool: "pool", Amount: 300}, CodePoolTerms}, // before the operator
		{"op", Lend{Pool: "pool", Amount: 9}, CodeAmount},
		{"op", Lend{Pool: "pool", Amount: 400}, CodeOK},
		{"ann", Lend{Pool: "pool", Amount: 401}, CodePoolTerms},
		{"ann", Lend{Pool: "pool", Amount: 300}, CodeOK},
		{"ann", Lend{Pool: "pool", Amount: 1}, CodeOK},
		{"op", Collect{Pool: "pool"}, CodePoolTerms}, // others rely on it
		{"ann", Collect{Pool: "pool"}, CodeOK},
		{"ann", Collect{Pool: "pool"}, CodeNothingDue},
		{"ann", Lend{Pool: "pool", Amount: 400}, CodeOK},
		{"bob", Transfer{To: pool, Amount: 7}, CodeOK}, // a gift, held until the first stake

		{"eve", bring(100, "pool", coordinator.Join{}), CodeNotOperator},
		{"op", bring(100, "none", coordinator.Join{}), CodeUnknownPool},
		{"op", bring(801, "pool", coordinator.Join{}), CodeFunds},
		{"op", bring(0, "pool", coordinator.Join{}), CodeAmount},
		{"op", bring(100, "pool", coordinator.Fund{}), CodePoolUse},
		{"op", bring(100, "pool", coordinator.Withdraw{}), CodePoolUse},
		{"op", bring(100, "pool", coordinator.Deposit{Member: public("op")}), CodePoolUse}, // not a member
		{"eve", bring(100, "", coordinator.Join{}), CodeOK},
		{"op", bring(100, "pool", coordinator.Deposit{Member: public("eve")}), CodePoolUse}, // paid elsewhere
		{"hand", bring(200, "pool", coordinator.Join{Payee: public("hand")}), CodeOK},       // but not paid there
		{"hand", bring(100, "pool", coordinator.Join{}), CodeCoordinator + Code(coordinator.ErrAlreadyMember)},
		{"op", bring(100, "pool", coordinator.Deposit{Member: public("hand")}), CodeOK},
		{"ann", Collect{Pool: "pool"}, CodeOK}, // of the gift
		{"bob", Lend{Pool: "pool", Amount: 50}, CodePoolStage},
		{"hand", bring(0, "", coordinator.Withdraw{}), CodeOK},
		{"ann", bring(1, "", coordinator.Join{}), codeStake},
		{"hand", bring(0, "", coordinator.Join{Payee: public("hand")}), CodeCoordinator + Code(coordinator.ErrPayee)},
		{"hand", bring(0, "", coordinator.Join{}), CodeOK}, // comes back, and is still paid at the pool's
	} {
		if got := c.block(c.tx(step.who, step.body))[0]; got != step.want {
			t.Fatalf("step %d, %s sends %+v: got %q, want %q", i, step.who, step.body, got, step.want)
		}
	}
	if m := c.member("hand"); m.Payee != pool || m.Stake != 300 {
		t.Errorf("stake %d is paid to %v", m.Stake, m.Payee)
	}
	p, _ := c.host.Pool("pool")
	if p.Lent != 800 || p.Idle != 500 || p.Back != 7 || p.Held != 0 || p.Unpaid != 4 || p.Stage != "working" {
		t.Errorf("%+v", p)
	}
	c.accept(c.tx("hand", bring(0, "", coordinator.Withdraw{})))
	c.blockAfter(5000)
	// Its operator has vanished, and the worker too: the lenders help themselves.
	c.want(CodeNotOperator, c.tx("ann", ClosePool{Pool: "pool"}))
	c.accept(c.tx("bob", ClaimFor{Run: "demo", Member: public("hand")}))
	c.blockAfter(PoolQuietMs)
	c.want(CodeNotOperator, c.tx("bob", ClosePool{Pool: "pool"}))
	c.accept(c.tx("ann", ClosePool{Pool: "pool"}), c.tx("ann", Collect{Pool: "pool"}))
	// 807 came back, 7 of them free of charge: 400 of 800 are ann's, and 3 of what is above.
	c.holds("ann", 1000+3)
	c.want(CodePoolStage, c.tx("op", bring(100, "pool", coordinator.Join{})))
	c.want(CodePoolOwed, c.tx("op", ClosePool{Pool: "pool"}))
	c.accept(c.tx("op", Collect{Pool: "pool"}), c.tx("op", ClosePool{Pool: "pool"}))
	c.holds("op", 1000+4) // with the token that rounding has left
	if len(c.host.Pools()) != 0 {
		t.Error("the pool is still there")
	}
}

func TestAPoolIsNotRemovedWhileARunOwesIt(t *testing.T) {
	c := newBankChain(t, 1000, "op", "bob")
	c.accept(c.tx("owner", stakeRun()), c.tx("op", CreatePool{Runs: []string{"demo"}, Name: "pool"}), c.tx("op", Lend{Pool: "pool", Amount: 100}))
	c.accept(c.tx("op", bring(100, "pool", coordinator.Join{})), c.tx("op", ClosePool{Pool: "pool"}))
	c.want(CodePoolOwed, c.tx("op", ClosePool{Pool: "pool"}))
	c.accept(c.tx("op", bring(0, "", coordinator.Withdraw{})))
	c.want(CodePoolOwed, c.tx("op", ClosePool{Pool: "pool"}))
	c.blockAfter(5000)
	c.accept(c.tx("op", bring(0, "", coordinator.Claim{})))
	c.want(CodePoolOwed, c.tx("op", ClosePool{Pool: "pool"}))
	c.accept(c.tx("op", Collect{Pool: "pool"}), c.tx("op", ClosePool{Pool: "pool"}))
	c.holds("op", 1000)
}

// A member's work that is still to be scored is owed to its pool: else its operator could remove
// the pool, create it again without lenders, and be paid for what was done with others' stake.
func TestAPoolIsNotRemovedWhileItsWorkIsUnscored(t *testing.T) {
	c := newBankChain(t, 1000, "op")
	run := scoredRun()
	run.Config.ScoreWindows, run.Config.RegisterCost = 40, 0
	c.accept(c.tx("owner", run), c.tx("op", CreatePool{Runs: []string{"demo"}, Name: "pool"}), c.tx("op", Lend{Pool: "pool", Amount: 100}))
	c.accept(c.tx("op", bring(100, "pool", coordinator.Join{})))
	for range 4 {
		c.work("op")
	}
	if got := c.member("op").Points; got == 0 {
		t.Fatal("no work was accepted")
	}
	c.accept(c.tx("op", bring(0, "", coordinator.Withdraw{})))
	for range 5 { // the epoch ends, and nothing is in flight
		c.blockAfter(20_000)
	}
	c.accept(c.tx("op", bring(0, "", coordinator.Claim{})), c.tx("op", ClosePool{Pool: "pool"}), c.tx("op", Collect{Pool: "pool"}))
	c.want(CodePoolOwed, c.tx("op", ClosePool{Pool: "pool"}))
}

// work has the only member of the run do what is next.
func (c *chain) work(who string) {
	c.t.Helper()
	v, _ := c.host.View("demo")
	params, _ := v.State.Params()
	if v.State.Phase() == coordinator.Warmup {
		c.accept(c.tx(who, send("demo", coordinator.Ready{Epoch: v.State.Epoch(), Params: params})))
		v, _ = c.host.View("demo")
	}
	r, _ := v.State.At(v.State.Round())
	c.accept(c.tx(who, send("demo", coordinator.Witness{
		Round: r.Number(), Complete: true, Params: params, Prev: params,
		Held: coordinator.SetHeld(nil, 0), Commitments: make([]byte, r.Filter().Bits/8),
	})))
}

func TestTokensSentToAPoolBeforeItIsThere(t *testing.T) {
	c := newBankChain(t, 1000, "op", "bob")
	c.accept(c.tx("owner", stakeRun()))
	c.accept(c.tx("bob", Transfer{To: PoolAddress(testChain, "pool"), Amount: 30}))
	c.accept(c.tx("op", CreatePool{Runs: []string{"demo"}, Name: "pool"}))
	if p, _ := c.host.Pool("pool"); p.Held != 30 {
		t.Errorf("%+v", p)
	}
	c.accept(c.tx("op", ClosePool{Pool: "pool"}), c.tx("op", Collect{Pool: "pool"}), c.tx("op", ClosePool{Pool: "pool"}))
	c.holds("op", 1030)
}

func TestPlacesOfPoolsAreBounded(t *testing.T) {
	c := newBankChain(t, 1_000_000, "op")
	c.accept(c.tx("owner", stakeRun()))
	for i := range PoolsMax {
		c.accept(c.tx("op", CreatePool{Runs: []string{"demo"}, Name: "p" + string(rune('a'+i/26)) + string(rune('a'+i%26))}))
	}
	c.want(CodePoolsFull, c.tx("op", CreatePool{Runs: []string{"demo"}, Name: "more"}))
	c.holds("op", 1_000_000-PoolsMax)
}

// An operator who could stake in a run of its own making would have its member convicted there, and
// take what was lent through that run's treasury.
func TestAPoolStakesOnlyInTheRunsOfItsTerms(t *testing.T) {
	c := newBankChain(t, 1000, "op", "ann")
	terms := CreatePool{Name: "pool", Runs: []string{"demo"}, Workers: []key.Public{public("hand")}}
	c.want(CodeUnknownRun, c.tx("op", terms)) // its lenders could not have looked at it
	c.accept(c.tx("owner", stakeRun()))
	for _, runs := range [][]string{nil, {"demo", "demo"}, {"demo", "a"}} {
		bad := terms
		bad.Runs = runs
		c.want(CodePoolTerms, c.tx("op", bad))
	}
	c.accept(c.tx("op", terms), c.tx("ann", Lend{Pool: "pool", Amount: 500}), c.tx("owner", createRun("own", "owner", 4)))
	stake := RunMessage{Run: "own", Value: 500, From: "pool", Message: coordinator.Append(nil, coordinator.Join{})}
	c.want(CodePoolTerms, c.tx("op", stake))
	c.want(CodePoolTerms, c.tx("hand", stake))
	stake.Run = "demo"
	c.want(CodeOK, c.tx("hand", stake))
	p, _ := c.host.Pool("pool")
	if len(p.Runs) != 1 || p.Runs[0] != "demo" || p.Idle != 0 {
		t.Errorf("%+v", p)
	}
}

// equivocation is the proof that somebody signed twice.
func (c *chain) equivocation(run, who string) coordinator.Equivocation {
	v, ok := c.host.View(run)
	if !ok {
		return coordinator.Equivocation{}
	}
	i, _ := v.State.Find(public(who))
	one := dispute.Commitment{Run: v.State.ID(), Round: 1, Member: i}
	two := one
	two.Loss = 1
	return coordinator.Equivocation{A: one.Sign(privateKey(who)), B: two.Sign(privateKey(who))}
}

func TestSlashedStakeStaysInTheRun(t *testing.T) {
	c := newBankChain(t, 1000, "ann", "bob", "op", "eve")
	c.accept(
		c.tx("owner", stakeRun()), c.tx("bob", bring(100, "", coordinator.Join{})), c.tx("ann", bring(151, "", coordinator.Join{})),
		c.tx("op", CreatePool{Runs: []string{"demo"}, Name: "pool", OwnBP: 5000}), c.tx("op", Lend{Pool: "pool", Amount: 300}), c.tx("eve", Lend{Pool: "pool", Amount: 300}),
		c.tx("op", bring(400, "pool", coordinator.Join{})),
	)
	c.want(codeValue, c.tx("bob", bring(1, "", c.equivocation("demo", "ann"))))
	c.want(CodeOK, c.tx("bob", bring(0, "", c.equivocation("demo", "ann"))))
	c.want(CodeCoordinator+Code(coordinator.ErrEjected), c.tx("bob", bring(0, "", c.equivocation("demo", "ann"))))
	v, _ := c.host.View("demo")
	ann, bob := c.member("ann"), c.member("bob")
	if got := ann.Stake + ann.Balance + bob.Stake + bob.Balance + v.State.Treasury() + c.member("op").Stake; got != 651 || c.escrow() != 651 || ann.Stake != 0 {
		t.Errorf("ann %d, bob %d and %d, treasury %d: %d of 651, escrow %d", ann.Stake, bob.Stake, bob.Balance, v.State.Treasury(), got, c.escrow())
	}
	c.want(codeNothing, c.tx("ann", bring(0, "", coordinator.Claim{})))
	c.want(CodeCoordinator+Code(coordinator.ErrEjected), c.tx("ann", bring(200, "", coordinator.Join{})))
	c.want(CodeCoordinator+Code(coordinator.ErrEjected), c.tx("bob", bring(20, "", coordinator.Deposit{Member: public("ann")})))
	if reward := bob.Balance; reward > 0 {
		c.want(CodeOK, c.tx("bob", bring(0, "", coordinator.Claim{})))
		c.holds("bob", 900+reward)
	}
	// The pool's machine is convicted: what was staked is its lenders' loss, what was not goes back
	// to them.
	c.accept(c.tx("bob", bring(0, "", c.equivocation("demo", "op"))), c.tx("op", ClosePool{Pool: "pool"}))
	c.accept(c.tx("eve", Collect{Pool: "pool"}), c.tx("op", Collect{Pool: "pool"}), c.tx("op", ClosePool{Pool: "pool"}))
	c.holds("eve", 800)
	c.holds("op", 800)
}
