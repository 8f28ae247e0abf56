package coordinator_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/chain/solana/svm"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	client "github.com/entrain-network/entrain/ledger/solana"
)

// TestClosingOnSolana has one member watch a run that takes several transactions to end a round: its
// client sends them all, and shows no state between. A message that comes in the middle is sent when
// the round has ended.
func TestClosingOnSolana(t *testing.T) {
	own := key.FromSeed([32]byte{9})
	c := court{t: t, program: solana.Program{1}, run: solana.Address{2}}
	c.url = svm.Serve(t, c.program, 5*time.Millisecond, 150)
	state := coordinator.AtClose(t, 6000, own.Public())
	s, err := coordinator.Attach(state)
	if err != nil {
		t.Fatal(err)
	}
	name, err := c.program.Name(s.Config().Name)
	if err != nil {
		t.Fatal(err)
	}
	c.put(name, solana.Address(c.program), []byte(solana.NameMagic), c.run[:], make([]byte, 32))
	c.put(solana.Address(own.Public()), solana.SystemProgram)
	begin := func(state []byte, closing byte) {
		tail := make([]byte, solana.TailBytes)
		tail[33] = closing
		c.put(c.run, solana.Address(c.program), state, tail)
	}
	join := func(ctx context.Context) ledger.Ledger {
		l, err := client.NewClient(ctx, client.Options{Program: c.program, Endpoints: []string{c.url}, Poll: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return l.As(own)
	}

	begin(state, 0)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan coordinator.Round, 1)
	join(ctx).Watch(ctx, s.Config().Name, func(now ledger.Snapshot) {
		if now.State.Closing() {
			t.Error("a client shows a round that is being ended")
		}
		if now.State.Round() > s.Round() {
			select {
			case ended <- now.State.Round():
			default:
			}
		}
	})
	select {
	case <-ended:
	case <-t.Context().Done():
		t.Fatal("the round does not end")
	}
	cancel()

	half := bytes.Clone(state)
	s, err = coordinator.Attach(half)
	if err != nil {
		t.Fatal(err)
	}
	env := coordinator.Env{NowMs: s.PhaseSince() + s.Config().RoundWitnessMs, Work: 1}
	for range 3 {
		if err := s.Apply(env, coordinator.Tick{}); err != nil || !s.Closing() {
			t.Fatal(err, s.Closing())
		}
	}
	begin(half, 1)
	done := make(chan error, 1)
	join(t.Context()).Submit(t.Context(), host.ToRun(s.Config().Name, coordinator.Withdraw{}), func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	after := c.state()
	if i, ok := after.Find(own.Public()); !ok || after.Status(i) != coordinator.StatusWithdrawn || after.Closing() || after.Round() != s.Round()+1 {
		t.Errorf("the member is %v in round %d", after.Status(i), after.Round())
	}
}
