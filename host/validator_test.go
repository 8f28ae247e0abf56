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

// A validator's stake comes with its registration and goes back when it leaves, or at once when a higher one takes its seat; what
// registering as a member costs stays in the run.
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

// A seat is not given up where what its validator has could not be received, since a purse begins with more.
func TestAValidatorMakesNoTinyPurse(t *testing.T) {
	c := newBankChain(t, 1<<40, "val", "vic")
	c.accept(c.tx("owner", scoredRun()))
	tiny := c.host.bank.floor() - 1
	c.accept(c.tx("val", bring(tiny, "", coordinator.RegisterValidator{Payee: public("cat")})))
	c.want(CodeDust, c.tx("val", bring(0, "", coordinator.RetireValidator{})))
	c.want(CodeDust, c.tx("vic", bring(tiny+5, "", coordinator.RegisterValidator{})))
	c.accept(c.tx("val", Transfer{To: public("cat"), Amount: tiny + 1}))
	c.accept(c.tx("vic", bring(tiny+5, "", coordinator.RegisterValidator{})))
	c.holds("cat", 2*tiny+1)
	c.accept(c.tx("vic", bring(0, "", coordinator.RetireValidator{})))
}
