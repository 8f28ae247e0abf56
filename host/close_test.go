package host

import (
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
)

// newOpenChain makes a chain on which everybody may create runs, for a deposit.
func newOpenChain(t testing.TB, amount uint64, who ...string) *chain {
	t.Helper()
	c := newBankChain(t, amount, who...)
	g := c.host.Genesis()
	g.Creators = nil
	h, err := NewHost(g, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	c.host = h
	return c
}

const day = 24 * 3600 * 1000

// A key with nothing fills no chain with runs, and one with tokens gets its deposits back.
func TestRunsCostADeposit(t *testing.T) {
	c := newOpenChain(t, 1<<40, "owner", "ann")
	deposit := c.host.RunDeposit()
	if deposit != 1<<27 {
		t.Fatalf("the deposit is %d", deposit)
	}
	c.want(CodeFunds, c.tx("nobody", createRun("squat", "nobody", 4)))
	for i := range RunsMax {
		c.want(CodeOK, c.tx("owner", createRun(fmt.Sprint("run", i), "owner", 4)))
	}
	c.holds("owner", 1<<40-RunsMax*deposit)
	c.want(CodeRunsFull, c.tx("owner", createRun("one-more", "owner", 4)))
	// Nobody works on them: the chain ends all of them, and then it closes them.
	c.blockAfter(RunIdleMs)
	if c.host.Due(c.host.TimeMs() + RunIdleMs - 1) {
		t.Error("a block is due before the time")
	}
	if !c.host.Due(c.host.TimeMs() + RunIdleMs) {
		t.Error("no block is due when the runs are to be closed")
	}
	c.blockAfter(RunIdleMs)
	c.holds("owner", 1<<40)
	if n := len(c.host.Runs()); n != 0 || len(c.host.Closed()) != RunsMax {
		t.Errorf("%d runs are left, %d are closed", n, len(c.host.Closed()))
	}
	c.want(CodeRunExists, c.tx("owner", createRun("run7", "owner", 4)))
	c.want(CodeOK, c.tx("owner", createRun("one-more", "owner", 4)))
}

// A chain where runs cost nothing loses idle ones sooner.
func TestIdleRunsOfAChainWithoutTokensAreClosed(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 4)))
	c.blockAfter(RunIdleFreeMs)
	c.blockAfter(RunIdleFreeMs)
	if len(c.host.Runs()) != 0 {
		t.Error("the run is still there")
	}
}

// Closing pays everybody, whether or not they ask, and the owner last.
func TestClosingARunPaysEverybody(t *testing.T) {
	c := newOpenChain(t, 1<<40, "owner", "ann", "bob", "val")
	run := scoredRun()
	run.Config.RegisterCost, run.Config.UnbondMs = 0, 2*day
	c.accept(c.tx("owner", run), c.tx("bob", bring(7000, "", coordinator.Fund{})))
	c.accept(c.tx("ann", bring(5000, "", coordinator.Join{})), c.tx("cat", bring(0, "", coordinator.Join{})))
	c.accept(c.tx("val", bring(3000, "", coordinator.RegisterValidator{})))
	c.want(CodeRunOpen, c.tx("owner", CloseRun{Run: "demo"}))
	c.want(CodeNotOwner, c.tx("ann", CloseRun{Run: "demo"}))
	c.want(CodeUnknownRun, c.tx("owner", CloseRun{Run: "other"}))
	c.accept(c.tx("owner", send("demo", coordinator.End{})))
	c.blockAfter(2*day - 2*blockMs)
	c.want(CodeRunOpen, c.tx("owner", CloseRun{Run: "demo"})) // the stakes are not free yet
	view, _ := c.host.View("demo")
	c.want(CodeOK, c.tx("owner", CloseRun{Run: "demo"}))
	c.holds("ann", 1<<40)
	c.holds("val", 1<<40)
	c.holds("bob", 1<<40-7000)
	c.holds("owner", 1<<40+7000) // the treasury, which nobody has earned
	if _, ok := c.host.View("demo"); ok {
		t.Error("the run is still there")
	}
	closed := c.host.Closed()
	if len(closed) != 1 || closed[0].State != view.Hash || closed[0].Paid != 8000 || closed[0].Owner != public("owner") {
		t.Errorf("the receipt is %+v", closed)
	}
	list, root, err := OpenClosed(c.host.ProveClosed())
	if err != nil || root != c.host.Hash() || !slices.Equal(list, closed) {
		t.Errorf("the receipt is not proven: %v", err)
	}
	c.want(CodeUnknownRun, c.tx("ann", send("demo", coordinator.Join{})))
	c.want(CodeRunExists, c.tx("owner", run))
	again, err := ParseHost(c.host.Append(nil), Rules{})
	if err != nil || again.Hash() != c.host.Hash() {
		t.Errorf("read again: %v", err)
	}
}

// An owner without a purse, and members with too little for one, do not stop a run from being
// closed.
func TestTinyDebtsDoNotKeepARunOpen(t *testing.T) {
	c := newOpenChain(t, 1<<40, "owner", "ann")
	c.accept(c.tx("owner", createRun("demo", "owner", 4)))
	c.accept(c.tx("ann", bring(1, "", coordinator.Join{Payee: public("nobody")})))
	c.accept(c.tx("owner", Transfer{To: public("ann"), Amount: c.host.Balance(public("owner"))}))
	c.accept(c.tx("owner", send("demo", coordinator.End{})))
	c.blockAfter(2 * day)
	c.accept(c.tx("owner", CloseRun{Run: "demo"}))
	c.holds("owner", c.host.RunDeposit()+1)
}

// The name of a closed run that a pool's terms name stays taken, even when its receipt is gone:
// else a stranger's run could get what was lent for it.
func TestANameInAPoolsTermsStaysTaken(t *testing.T) {
	c := newOpenChain(t, 1<<40, "owner", "op", "eve")
	c.accept(c.tx("owner", createRun("demo", "owner", 4)), c.tx("op", CreatePool{Name: "pool", Runs: []string{"demo"}}))
	c.accept(c.tx("owner", send("demo", coordinator.End{})))
	c.blockAfter(2 * day)
	c.accept(c.tx("owner", CloseRun{Run: "demo"}))
	for i := range ClosedMax {
		c.host.archive.add(Receipt{Name: fmt.Sprint(i), Owner: key.Public{1}})
	}
	c.want(CodeRunExists, c.tx("eve", createRun("demo", "eve", 4)))
	c.accept(c.tx("op", ClosePool{Pool: "pool"}))
	c.accept(c.tx("op", ClosePool{Pool: "pool"}))
	c.want(CodeOK, c.tx("eve", createRun("demo", "eve", 4)))
}
