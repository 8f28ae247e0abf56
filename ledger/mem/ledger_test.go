package mem_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger/ledgertest"
	"github.com/entrain-network/entrain/ledger/mem"
	"github.com/entrain-network/entrain/loop"
)

func TestLedger(t *testing.T) {
	l := loop.NewReal()
	chain, err := mem.New(l, mem.Options{Genesis: host.Genesis{Chain: testChain}, Block: time.Millisecond, Retry: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	ledgertest.Test(t, func() ledgertest.Link {
		c := chain.Client()
		return ledgertest.Link{Client: c, Cut: c.Cut}
	})
}
