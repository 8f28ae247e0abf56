package comet

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
)

// TestTokensOverTheAPI moves tokens about, restarts the replica, and looks again.
func TestTokensOverTheAPI(t *testing.T) {
	ann, bob := signer("ann"), signer("bob")
	dir := replicaDir(t, Options{Accounts: []host.Allocation{{Key: ann.Key.Public(), Amount: 600}, {Key: bob.Key.Public(), Amount: 400}}})
	r, stop := start(t, dir)
	c := newClient(t, r.Endpoint())
	for _, step := range []struct {
		from *ledger.Signer
		body host.Body
		want host.Code
	}{
		{ann, host.Transfer{To: bob.Key.Public(), Amount: 50}, host.CodeOK},
		{ann, host.Transfer{To: bob.Key.Public(), Amount: 551}, host.CodeFunds},
		{bob, host.CreatePool{Name: "pool", Runs: []string{"demo"}, CommissionBP: 1000}, host.CodeUnknownRun},
		{bob, createRun("demo", bob.Key.Public(), 4), host.CodeOK},                                    // for a deposit of 2
		{bob, host.CreatePool{Name: "pool", Runs: []string{"demo"}, CommissionBP: 1000}, host.CodeOK}, // for a deposit of 1
		{ann, host.Lend{Pool: "pool", Amount: 500}, host.CodeOK},
		{ann, host.Lend{Pool: "other", Amount: 5}, host.CodeUnknownPool},
		{bob, host.Transfer{To: host.PoolAddress(testChain, "pool"), Amount: 9}, host.CodeOK},
		{bob, host.ClosePool{Pool: "pool"}, host.CodeOK},
		{bob, host.Collect{Pool: "pool"}, host.CodeNothingDue}, // a tenth of 9 is nothing yet
		{ann, host.SetName{Name: "ada"}, host.CodeOK},
	} {
		if err := submit(t, c, step.from, step.body); host.CodeOf(err) != step.want {
			t.Errorf("%+v: got %v, want %v", step.body, err, step.want)
		}
	}
	look := func(c *Client) {
		t.Helper()
		ctx := t.Context()
		a, errA := c.Account(ctx, ann.Key.Public())
		b, errB := c.Account(ctx, bob.Key.Public())
		none, errC := c.Account(ctx, signer("cat").Key.Public())
		if err := errors.Join(errA, errB, errC); err != nil || a.Tokens != 50 || b.Tokens != 438 || none.Tokens != 0 || a.Key != ann.Key.Public() {
			t.Errorf("accounts: %+v, %+v, %+v, %v", a, b, none, err)
		}
		names, err := c.Pools(ctx)
		if err != nil || !slices.Equal(names, []string{"pool"}) {
			t.Errorf("pools: %q, %v", names, err)
		}
		p, err := c.Pool(ctx, "pool")
		if err != nil || p.Stage != "closed" || p.Lent != 500 || p.Back != 500 || p.Unpaid != 509 || p.Deposit != 1 ||
			len(p.Lenders) != 1 || p.Lenders[0].Due != 509 || p.Operator != bob.Key.Public() {
			t.Errorf("pool: %+v, %v", p, err)
		}
		if _, err := c.Pool(ctx, "none"); !errors.Is(err, ledger.ErrUnknownPool) {
			t.Errorf("a pool that is none: %v", err)
		}
		for range 2 { // the second answer has no list
			if list, err := c.Names(ctx); err != nil || len(list) != 1 || list[0].Name != "ada" {
				t.Errorf("names: %+v, %v", list, err)
			}
		}
		if s, err := c.Status(ctx); err != nil || s.Supply != 1000 {
			t.Errorf("status: %+v, %v", s, err)
		}
	}
	look(c)
	if code, _ := fetch(t, http.MethodGet, r.Endpoint()+"/v1/accounts/me", nil); code != http.StatusBadRequest {
		t.Errorf("an account of no key: status %d", code)
	}
	before := r.app.hash
	stop()
	r, _ = start(t, dir)
	if r.app.hash != before {
		t.Error("the state has another hash after a restart")
	}
	look(newClient(t, r.Endpoint()))
}
