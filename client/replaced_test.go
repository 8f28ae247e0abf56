package client

import (
	"bytes"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// TestReplacedMemberDoesNotPayAgainByItself has a newcomer take a member's slot. To join again costs tokens, so a participant
// does so only when its owner starts it again.
func TestReplacedMemberDoesNotPayAgainByItself(t *testing.T) {
	cfg := testConfig(2, 1, 10)
	cfg.Slots, cfg.Validators, cfg.ScoreWindows, cfg.RegisterCost = 2, 1, 2, 10
	live, err := coordinator.New(coordinator.Limits{Members: 8, Witnesses: 4, Validators: 1}, cfg, coordinator.Env{NowMs: 1000})
	if err != nil {
		t.Fatal(err)
	}
	now := uint64(1000)
	join := func(k key.Public) {
		if err := live.Apply(coordinator.Env{NowMs: now, Sender: k, Value: 10}, coordinator.Join{}); err != nil {
			t.Fatal(err)
		}
	}
	self := key.FromSeed(wire.Sum("replaced"))
	// asks steps a machine through some seconds, and counts how often it asks to join, and what it tells its owner.
	asks := func(m *Machine) (joins, notes int) {
		for range 30 {
			now += 200
			state, err := coordinator.Open(bytes.Clone(live.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range m.Step(now, StateChanged{State: state, TimeMs: now}) {
				switch a := a.(type) {
				case Note:
					notes++
				case Submit:
					if _, ok := a.Message.(coordinator.Join); ok {
						joins++
					}
				}
			}
		}
		return joins, notes
	}
	m := New(Config{Self: self.Public(), PayloadMax: 1000})
	m.Step(now, Loaded{Known: true, Params: cfg.ModelHash})
	if joins, _ := asks(m); joins == 0 {
		t.Fatal("a newcomer does not join")
	}
	join(self.Public())
	asks(m)
	join(key.Public{7})
	join(key.Public{8})
	if i, _ := live.Find(self.Public()); live.Status(i) != coordinator.StatusReplaced {
		t.Fatalf("it is %v", live.Status(i))
	}
	if joins, notes := asks(m); joins > 0 || notes != 1 {
		t.Errorf("replaced, it asks %d times to join, and says so %d times", joins, notes)
	}
	again := New(Config{Self: self.Public(), PayloadMax: 1000})
	again.Step(now, Loaded{Known: true, Params: cfg.ModelHash})
	if joins, _ := asks(again); joins == 0 {
		t.Error("started again, it does not join")
	}
}
