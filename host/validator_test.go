package host

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator"
)

// scoredRun is a run with one seat for a validator, and a cost of registering.
func scoredRun() CreateRun {
	r := createRun("demo", "owner", 16)
	r.Limits.Validators = 1
	r.Config.Validators, r.Config.ScoreWindows, r.Config.Emission, r.Config.RegisterCost = 1, 2, 50, 30
	return r
}

// A validator's stake comes with its registration and goes back when it leaves, or at once when a
// higher one takes its seat; what registering as a member costs stays in the run.
func TestValidatorsStakeComesAndGoes(t *testing.T) {
	c := newBankChain(t, 1000, "ann", "bob", "val", "vic")
	c.accept(c.tx("owner", scoredRun()))
	for _, step := range []struct {
		who  string
		body Body
		want Code
	}{
		{"val", bring(0, "", coordinator.RegisterValidator{}), codeStake},
		{"val", bring(1001, "", coordinator.RegisterValidator{}), CodeFunds},
		{"val", bring(100, "", coordinator.RegisterValidator{Payee: public("bob")}), CodeOK},
		{"vic", bring(100, "", coordinator.RegisterValidator{}), CodeCoordinator + Code(coordinator.ErrSeats)},
		{"vic", bring(300, "", coordinator.RegisterValidator{}), CodeOK},
		{"val", bring(0, "", coordinator.RetireValidator{}), CodeCoordinator + Code(coordinator.ErrNotValidator)},
		{"ann", bring(29, "", coordinator.Join{}), CodeCoordinator + Code(coordinator.ErrCost)},
		{"ann", bring(30, "", coordinator.Join{}), CodeOK},
		{"vic", bring(50, "", coordinator.RegisterValidator{}), CodeOK},
	} {
		c.want(step.want, c.tx(step.who, step.body))
	}
	c.holds("val", 900)
	c.holds("bob", 1100)
	c.holds("vic", 650)
	c.holds("ann", 970)
	if c.escrow() != 380 {
		t.Errorf("the run holds %d", c.escrow())
	}
	c.accept(c.tx("vic", bring(0, "", coordinator.RetireValidator{})))
	c.holds("vic", 1000)
	if c.escrow() != 30 {
		t.Errorf("the run holds %d", c.escrow())
	}
}

// A validator that may no longer take part scores no work done from then on.
func TestAValidatorThatIsNotAllowedGivesUpItsSeat(t *testing.T) {
	for _, by := range []string{"list", "revoke", "expiry"} {
		c := newBankChain(t, 1000, "val", "vic")
		c.accept(c.tx("owner", scoredRun()))
		c.accept(c.tx("val", c.certificate("ann", "val", 60_000)))
		c.accept(c.tx("val", bring(100, "", coordinator.RegisterValidator{})))
		switch by {
		case "list":
			c.accept(c.tx("owner", Admit{Run: "demo", Listed: true, Add: keysOf("bob")}))
		case "revoke":
			c.accept(c.tx("ann", Revoke{Run: "demo", Node: public("val")}))
		case "expiry":
			c.blockAfter(60_000)
		}
		c.block()
		c.holds("ann", 100)
		if view, _ := c.host.View("demo"); len(view.State.Validators()) > 0 || c.escrow() > 0 {
			t.Errorf("%s: the run has %+v, and holds %d", by, view.State.Validators(), c.escrow())
		}
	}
}

// A validator does not leave with too few tokens for a purse, but they do not keep its seat either:
// to who loses it they are lost.
func TestAValidatorMakesNoTinyPurse(t *testing.T) {
	c := newBankChain(t, 1<<40, "val", "vic")
	c.accept(c.tx("owner", scoredRun()))
	tiny := c.host.bank.floor() - 1
	c.accept(c.tx("val", bring(tiny, "", coordinator.RegisterValidator{Payee: public("cat")})))
	c.want(CodeDust, c.tx("val", bring(0, "", coordinator.RetireValidator{})))
	c.accept(c.tx("vic", bring(tiny+5, "", coordinator.RegisterValidator{})))
	c.holds("cat", 0)
	if view, _ := c.host.View("demo"); view.State.Treasury() != tiny || c.escrow() != 2*tiny+5 {
		t.Errorf("the treasury has %d, the run %d", view.State.Treasury(), c.escrow())
	}
	c.accept(c.tx("vic", bring(0, "", coordinator.RetireValidator{})))
}

// Keys that leave a run with one token owed to each keep no place in it.
func TestATokenDoesNotKeepAPlace(t *testing.T) {
	c := newBankChain(t, 1<<40, "ann", "bob")
	c.accept(c.tx("owner", createRun("demo", "owner", 2)))
	for _, who := range []string{"ann", "bob"} {
		c.accept(c.tx(who, bring(1, "", coordinator.Join{Payee: public("nobody" + who)})))
		c.accept(c.tx(who, bring(0, "", coordinator.Withdraw{})))
	}
	c.accept(c.tx("cat", bring(0, "", coordinator.Join{})))
	c.accept(c.tx("dan", bring(0, "", coordinator.Join{})))
	if view, _ := c.host.View("demo"); view.State.Treasury() != 2 || c.escrow() != 2 {
		t.Errorf("the treasury has %d, the run %d", view.State.Treasury(), c.escrow())
	}
}
