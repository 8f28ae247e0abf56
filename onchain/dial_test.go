package onchain

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
)

// slow is a chain that takes a transaction into a block after a while.
type slow struct {
	ledger.Ledger
	after time.Duration
}

func (s slow) Submit(ctx context.Context, _ host.Body, done func(error)) {
	go func() {
		select {
		case <-time.After(s.after):
			done(nil)
		case <-ctx.Done():
		}
	}()
}

// A slow chain is waited for. After that nobody repeats a payment that may still be made.
func TestWhatATransactionWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := Submit(t.Context(), slow{after: 50 * time.Second}, host.Transfer{}); err != nil {
			t.Errorf("of a block that takes 50 seconds: %v", err)
		}
		err := Submit(t.Context(), slow{after: time.Hour}, host.Transfer{})
		if err == nil || !strings.Contains(err.Error(), "may still take it") || !strings.Contains(err.Error(), "1m0s") {
			t.Errorf("of a block that takes an hour: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Submit(ctx, slow{after: time.Hour}, host.Transfer{}); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
	})
}
