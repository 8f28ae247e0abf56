package live_test

import (
	"context"
	"testing"
	"time"

	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/optim"
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
	engine, err := cpu.New(engine.Run{
		Model: model, Codec: slice.Config{Compression: 4, Leaf: 16, Decay: 1, ClipNorm: 1}, Data: counted{}, Sequence: 12,
		Schedule: optim.Schedule{Kind: optim.Constant, Base: 3e-3},
	}, cpu.Options{Workers: 1, Micro: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	chain, clock := new(slow), loop.NewVirtual(time.Unix(0, 0))
	v, err := live.New(t.Context(), live.Config{
		Run: "run", ID: wire.Sum("run"), Key: key.FromSeed([32]byte{1}), Ledger: chain, Loop: clock, Engine: engine,
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
