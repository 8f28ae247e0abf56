package coordinator

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// TestClosingsInSteps applies all messages of the scenarios and of random runs also with bounded
// work, and Ticks until the closing is over: the state is the same, however it was split. Between
// them the state is sound, and takes nothing else.
func TestClosingsInSteps(t *testing.T) {
	closings, stages := 0, [settling + 1]int{}
	Mirrored(t, 10, func(a Applied) {
		was, err := Attach(a.Before)
		if err != nil || was.Closing() || a.Env.Work > 0 || a.Err != nil {
			return
		}
		for _, work := range []uint64{1, 3 * judgeUnits, 7 * judgeUnits, 100_000} {
			ticks := 0
			s := inSteps(t, a, work, func(s State) {
				stages[s.h().Closing()]++
				ticks++
			})
			if !bytes.Equal(s.b, unpaid(slices.Clone(a.After))) {
				t.Fatalf("%s in steps of %d units: another state than at once", Name(a.Message), work)
			}
			if ticks == 0 {
				return // it closes nothing
			}
		}
		closings++
	})
	for stage := warming; stage <= settling; stage++ {
		if stages[stage] == 0 && stage != agreeing { // it is small, and the first
			t.Errorf("no message stopped in stage %d", stage)
		}
	}
	t.Logf("%d messages; by stages: %d", closings, stages)
}

// inSteps applies a message and the Ticks that its closing takes, with bounded work, and shows the
// states between. It returns the last, without the message's payment.
func inSteps(t *testing.T, a Applied, work uint64, between func(State)) State {
	s, err := Open(slices.Clone(a.Before))
	if err != nil {
		t.Fatal(err)
	}
	env := a.Env
	if l, ok := env.Referee.(*listener); ok {
		env.Referee = l.of
	}
	env.Work = work
	if err := s.Apply(env, a.Message); err != nil {
		t.Fatalf("%s: %v", Name(a.Message), err)
	}
	env.Value = 0
	for n := 0; s.Closing(); n++ {
		if _, err := Open(s.b); err != nil {
			t.Fatalf("a closing's state, in stage %d at %d: %v", s.h().Closing(), s.h().Cursor(), err)
		}
		between(s)
		kept := slices.Clone(s.b)
		if err := s.Apply(env, Withdraw{}); !errors.Is(err, ErrClosing) || !bytes.Equal(kept, s.b) {
			t.Fatalf("a closing takes a Withdraw: %v", err)
		}
		env.Sender, env.Seed[0] = key.Public{}, byte(n) // which decides nothing
		if err := s.Apply(env, Tick{}); err != nil || bytes.Equal(kept, s.b) {
			t.Fatalf("a Tick in a closing: %v, or it changes nothing", err)
		}
	}
	unpaid(s.b)
	return s
}

// unpaid removes the note of the last payment, which the next message also does.
func unpaid(b []byte) []byte {
	s, err := Attach(b)
	if err != nil {
		panic(err)
	}
	s.h().SetPayment(key.Public{}, 0)
	return b
}

// TestSettlementIsLeftAlone stops a settlement of scores after every step. Until it is over nobody moves tokens or leaves: neither
// members, validators, the owner nor strangers. Who sends the Ticks, when, decides nothing, and no token is lost or made.
func TestSettlementIsLeftAlone(t *testing.T) {
	s := largeScored(t, 40, 5)
	for i := range s.Count() { // some are owed tokens, and some have not pleased
		s.place(i).SetUnvested(uint64(i) * 7)
		s.h().SetEscrow(s.Escrow() + uint64(i)*7)
		s.buffer().Given(1, uint32(i)%5).SetScore(i, uint16(i)*1600+1)
	}
	once, env := State{b: slices.Clone(s.b), l: s.l}, Env{NowMs: bornMs, Height: 7}
	if err := once.Apply(env, Tick{}); err != nil {
		t.Fatal(err)
	}
	escrow, steps := s.Escrow(), 0
	owner, member, validator := s.Config().Owner, s.Key(3), s.buffer().Seat(1).Key()
	for env.Work = 1; steps == 0 || s.Closing(); steps++ {
		if err := s.Apply(env, Tick{}); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(s.b); err != nil || s.Escrow() != escrow {
			t.Fatalf("step %d at %d: %v; %d tokens in escrow, of %d", s.h().Drawn(), s.h().Cursor(), err, s.Escrow(), escrow)
		}
		env = Env{NowMs: env.NowMs + PlaceMs, Height: env.Height + 1000, Seed: wire.Sum("test/tick", wire.AppendU32(nil, uint32(steps))), Work: 1}
		if !s.Closing() {
			continue
		}
		kept := slices.Clone(s.b)
		for _, try := range []struct {
			from  key.Public
			value uint64
			m     Message
		}{
			{member, 0, Claim{}}, {member, 0, Withdraw{}}, {validator, 0, Claim{}}, {validator, 0, RetireValidator{}},
			{validator, 9, RegisterValidator{}}, {key.Public{31: 9}, 1 << 40, RegisterValidator{}}, {key.Public{31: 9}, 1 << 40, Join{}},
			{key.Public{31: 9}, 5, Fund{}}, {key.Public{31: 9}, 5, Deposit{Member: member}},
			{owner, 0, Refund{Amount: 1}}, {owner, 0, End{}}, {owner, 0, Pause{}}, {owner, 0, Change{}},
		} {
			from := env
			from.Sender, from.Value = try.from, try.value
			if err := s.Apply(from, try.m); !errors.Is(err, ErrClosing) || !bytes.Equal(s.b, kept) {
				t.Fatalf("in step %d %s: %v, or it changes the state", s.h().Drawn(), Name(try.m), err)
			}
		}
	}
	if !bytes.Equal(s.b, once.b) || steps < 80 {
		t.Errorf("after %d steps the state is another than at once", steps)
	}
}
