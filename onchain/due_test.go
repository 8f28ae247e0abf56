package onchain

import (
	"context"
	"testing"
	"time"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/wire"
)

// idle is a chain of one run that has made no block for a while.
type idle struct {
	ledger.Chain
	text []byte
	last ledger.Snapshot
}

func (idle) ChainID() string { return "idle" }

func (c idle) Spec(_ context.Context, _ string, done func([]byte, error)) { done(c.text, nil) }

func (c idle) Watch(_ context.Context, _ string, f func(ledger.Snapshot)) { f(c.last) }

func (c idle) Status(context.Context) (ledger.Status, error) {
	return ledger.Status{TimeMs: c.last.TimeMs}, nil
}

// A stake came free after the chain's last block: a claim makes the next, and pays it.
func TestDueIsOfTheNextBlock(t *testing.T) {
	sp := spec.Default(all.Kinds())
	sp.Name, sp.Data.Manifest = "run", wire.Sum("test/manifest").String()
	sp.Members.Min, sp.Members.Start, sp.Batch.Start, sp.Batch.End = 1, 1, 8, 8
	sp.Trust = spec.Trust{Stake: 1000, Unbond: spec.Duration(time.Hour)}
	text, err := sp.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	owner, ann := key.FromSeed(wire.Sum("test/owner")).Public(), key.FromSeed(wire.Sum("test/ann")).Public()
	limits, config := sp.Coordinator(owner, wire.Sum("test/model"), host.SpecHash(text))
	config.StateHash = wire.Sum("test/fresh")
	for _, v := range []struct {
		ago  time.Duration
		want uint64
	}{{2 * time.Hour, 1000}, {time.Minute, 0}} {
		left := uint64(time.Now().Add(-v.ago).UnixMilli())
		env := coordinator.Env{NowMs: left, Height: 1, Seed: wire.Sum("test/seed")}
		s, err := coordinator.New(limits, config, env)
		if err != nil {
			t.Fatalf("%v: %v", err, config.Check(limits))
		}
		env.Sender, env.Value = ann, 1000
		if err := s.Apply(env, coordinator.Join{}); err != nil {
			t.Fatal(err)
		}
		env.Value = 0
		if err := s.Apply(env, coordinator.Withdraw{}); err != nil {
			t.Fatal(err)
		}
		due, err := GetDue(t.Context(), idle{text: text, last: ledger.Snapshot{Height: 1, TimeMs: left, State: s}}, "run", ann)
		if err != nil || due.Tokens != v.want || due.Payee != ann {
			t.Errorf("%v after leaving: %+v, %v; want %d tokens", v.ago, due, err, v.want)
		}
	}
}
