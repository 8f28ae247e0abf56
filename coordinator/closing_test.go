package coordinator

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/key"
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
