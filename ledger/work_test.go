package ledger

import (
	"context"
	"testing"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// busy is a chain that asks for some work.
type busy struct {
	Sender
	bits int
	sent []host.Tx
}

func (b *busy) ChainID() string { return "busy" }

func (b *busy) Send(_ context.Context, tx []byte, done func(error)) {
	t, err := host.ParseTx(tx)
	if err == nil {
		err = t.Verify("busy")
	}
	if b.sent = append(b.sent, t); err == nil && t.Work() < b.bits {
		err = &host.TxError{Code: host.CodeWork}
	}
	done(err)
}

// A transaction that a busy chain refuses is sent again with more work, and a later nonce.
func TestAKeyWorksForABusyChain(t *testing.T) {
	b := &busy{bits: 11}
	l := As(b, key.FromSeed(wire.Sum("ann")), time.Now)
	calls := 0
	l.Submit(t.Context(), host.Announce{Run: "demo"}, func(err error) {
		if calls++; err != nil {
			t.Error(err)
		}
	})
	if calls != 1 || len(b.sent) < 2 || b.sent[len(b.sent)-1].Nonce <= b.sent[0].Nonce {
		t.Errorf("done %d times, sent %d", calls, len(b.sent))
	}
	l.Submit(t.Context(), host.Announce{Run: "demo"}, func(error) {})
	if n := len(b.sent); b.sent[n-1].Nonce <= b.sent[n-2].Nonce {
		t.Error("the nonces do not grow")
	}
}
