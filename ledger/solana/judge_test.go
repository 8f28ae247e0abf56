package solana_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger/solana"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/wire"
)

// spec reads a run's specification.
func (w world) spec(run string) (text []byte, err error) {
	w.t.Helper()
	done := make(chan struct{})
	w.Spec(w.t.Context(), run, func(b []byte, e error) {
		text, err = b, e
		close(done)
	})
	<-done
	return text, err
}

// TestRulesOnSolana makes runs that check results, and one whose owner published other rules than
// its specification asks for.
func TestRulesOnSolana(t *testing.T) {
	rules := func(spec []byte) ([]byte, error) {
		if strings.Contains(string(spec), "unfit") {
			return nil, errors.New("no rules for this")
		}
		return append([]byte(strings.Repeat("rules of ", 200)), spec...), nil
	}
	w := newWorld(t, 150, solana.Options{Rules: rules})
	checked := func(name string, more func(b *host.CreateRun)) host.Body {
		return w.body(name, func(b *host.CreateRun) {
			b.Config.VerificationPercent, b.Config.VerifyMs, b.Config.DisputeMs, b.Config.StateHash = 10, 60_000, solana.DisputeMsMin, wire.Sum("test/fresh")
			if more != nil {
				more(b)
			}
		})
	}
	w.must(w.key(1), checked("sound", nil))
	if _, err := w.spec("sound"); err != nil {
		t.Errorf("the rules are sound: %v", err)
	}
	var refused *host.TxError
	poor := make(chan error, 1) // without an airdrop
	w.Client.As(w.key(9)).Submit(t.Context(), host.ToRun("sound", coordinator.Accuse{}), func(err error) { poor <- err })
	if err := <-poor; host.CodeOf(err) != host.CodeFunds || !strings.Contains(err.Error(), "SOL, which come back") {
		t.Errorf("an accusation without SOL: %v", err)
	}
	if err := w.submit(w.key(2), host.ToRun("sound", coordinator.Accuse{})); host.CodeOf(err) != host.CodeCoordinator+host.Code(coordinator.ErrNotMember) {
		t.Errorf("a stranger's accusation: %v", err)
	}
	for want, more := range map[string]func(b *host.CreateRun){
		"takes up to 300 s": func(b *host.CreateRun) { b.Config.DisputeMs = solana.DisputeMsMin - 1 },
		"no rules for this": func(b *host.CreateRun) { b.Spec = []byte("unfit"); b.Config.SpecHash = host.SpecHash(b.Spec) },
	} {
		if err := w.submit(w.key(1), checked("unsound", more)); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	liar, _ := connect(t, w.url, solana.Options{Rules: func([]byte) ([]byte, error) { return []byte("mine"), nil }})
	done := make(chan error, 1)
	liar.As(w.key(1)).Submit(t.Context(), checked("forged", nil), func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := w.spec("forged"); err == nil || !strings.Contains(err.Error(), "do not join it") {
		t.Errorf("forged rules: %v", err)
	}
}
