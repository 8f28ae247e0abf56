package live_test

import (
	"context"
	"testing"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/validator/live"
	"github.com/entrain-network/entrain/wire"
)

// slow is a ledger that knows addresses before it has a state.
type slow struct {
	ledger.Ledger
	asked int
}

func (*slow) Watch(context.Context, string, func(ledger.Snapshot)) {}

func (s *slow) Peers(_ context.Context, _ string, done func([]host.Peer, error)) {
	s.asked++
	done(nil, nil)
}

// A validator with a bucket waits for the run's state before it announces the bucket.
func TestAddressesBeforeTheState(t *testing.T) {
	chain, clock := new(slow), loop.NewVirtual(time.Unix(0, 0))
	v, err := live.New(t.Context(), live.Config{
		Run: "run", ID: wire.Sum("run"), Key: key.FromSeed([32]byte{1}), Ledger: chain, Loop: clock, Engine: newEngine(t),
		Registered: "s3://bucket",
	})
	if err != nil {
		t.Fatal(err)
	}
	clock.Post(v.Start)
	clock.Run(time.Unix(10, 0))
	if chain.asked < 3 {
		t.Errorf("addresses were asked for %d times", chain.asked)
	}
}
