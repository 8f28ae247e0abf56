package ledger

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
)

// Signer signs the transactions of one key for one chain. Its nonces increase across restarts of
// the process, as long as the clock does. It is not safe for concurrent use.
type Signer struct {
	Chain string
	Key   key.Private
	last  uint64 // the last nonce: the time in microseconds, or one more than the one before
}

// Sign is Work without any.
func (s *Signer) Sign(now time.Time, body host.Body) ([]byte, error) { return s.Work(now, body, 0) }

// Work returns a signed transaction, whose ID begins with at least that number of zero bits, that
// expires half of host.TxLifetimeMs after now, the time of the wall clock or of the virtual one.
// The clock may differ from the ledger's by up to that half.
func (s *Signer) Work(now time.Time, body host.Body, bits int) ([]byte, error) {
	s.last = max(s.last+1, uint64(now.UnixMicro()))
	t := host.Tx{Chain: s.Chain, Nonce: s.last, ExpiresMs: uint64(now.UnixMilli()) + host.TxLifetimeMs/2, Body: body}
	if bits > 0 {
		t.ToWork(s.Key, bits)
		s.last = t.Nonce
	}
	return t.Sign(s.Key)
}

// Sender brings transactions in package host's format to a chain.
type Sender interface {
	Reader

	// Send brings a signed transaction into a block; see Ledger.Submit.
	Send(ctx context.Context, tx []byte, done func(error))
}

// As returns the Ledger that signs with k what it is told to submit, and sends it through s. Now is
// the clock that transactions expire by. The Ledger is a Lighter if s is.
func As(s Sender, k key.Private, now func() time.Time) Ledger {
	l := &signing{Sender: s, now: now, signer: Signer{Chain: s.ChainID(), Key: k}}
	if lighter, ok := s.(Lighter); ok {
		return struct {
			*signing
			Lighter
		}{l, lighter}
	}
	return l
}

type signing struct {
	Sender
	now    func() time.Time
	mu     sync.Mutex // guards signer
	signer Signer
}

// Submit implements Ledger.
func (s *signing) Submit(ctx context.Context, body host.Body, done func(error)) {
	s.submit(ctx, body, 0, done)
}

// submit submits body with some work, and with more if the chain asks for it.
func (s *signing) submit(ctx context.Context, body host.Body, bits int, done func(error)) {
	s.mu.Lock()
	tx, err := s.signer.Work(s.now(), body, bits)
	s.mu.Unlock()
	if err != nil {
		done(err)
		return
	}
	s.Send(ctx, tx, func(err error) {
		var refused *host.TxError
		if errors.As(err, &refused) && refused.Code == host.CodeWork && bits < host.WorkBitsMax {
			s.submit(ctx, body, min(max(8, bits+4), host.WorkBitsMax), done)
			return
		}
		done(err)
	})
}
