package coordinator

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// exercise calls everything there is on a state that opened, and applies every kind of message as everybody. Nothing may
// panic, whatever the bytes say, and refused messages still change nothing.
func exercise(t *testing.T, s State) {
	t.Helper()
	look(s)
	env := Env{NowMs: s.PhaseSince(), Seed: wire.Sum("test/exercise")}
	for range 12 {
		for i := range s.Count() {
			env.Sender = s.Key(i)
			for _, m := range everyMessage(s, i) {
				before := slices.Clone(s.Bytes())
				if err := s.Apply(env, m); err != nil && !bytes.Equal(before, s.Bytes()) {
					t.Fatalf("%#v was refused with %q, but changed the state", m, err)
				}
			}
		}
		env.Sender = key.Public{}
		env.NowMs += s.Config().EpochMs
		env.Height++
		if err := s.Apply(env, Tick{}); err != nil {
			t.Fatal(err)
		}
		look(s)
	}
}

// everyMessage returns messages of member i that fit the state as far as they can.
func everyMessage(s State, i uint32) []Message {
	params, _ := s.Params()
	m := Witness{Round: s.Round(), Params: params}
	if r, ok := s.At(s.Round()); ok {
		m.Commitments = make([]byte, r.Filter().Bytes())
		if a, ok := s.At(r.Attests()); ok {
			m.Held = bytes.TrimRight(a.expected(), "\x00")
		}
		m.Complete = i%2 == 0
	}
	list := []Message{
		Ready{Epoch: s.Epoch(), Params: params}, m, Witness{Round: s.Round(), Complete: true},
		Checkpoint{Epoch: s.Epoch(), Params: params}, Resume{}, Join{},
	}
	if i%5 == 4 {
		list = append(list, Withdraw{}, Pause{})
	}
	return list
}

// look calls every accessor.
func look(s State) {
	_, _, _, _, _, _ = s.Hash(), s.Config(), s.Limits(), s.ID(), s.Deadline(), s.Phase().String()
	_, _, _, _, _ = s.EpochSince(), s.Draining(), s.PausePending(), s.Redo(), s.RedoLost()
	_, _ = s.LastCheckpoint()
	for _, i := range s.Checkpointers() {
		_, _ = s.Key(i), s.Checkpointer(i)
	}
	n := s.Count()
	for i := range n {
		_ = s.Member(i).Status.String()
		s.Find(s.Key(i))
	}
	for k := range uint32(ringRounds) {
		r, ok := s.At(s.slot(k).Number())
		if !ok {
			continue
		}
		_, _, _, _, _ = r.Epoch(), r.Seed(), r.OpenedMs(), r.Quorum(), r.AcceptedCount()
		_, _ = r.Agreed()
		for _, p := range r.Reports() {
			_ = s.Key(p.Member)
		}
		for _, i := range append(r.Witnesses(), n, s.l.members, 1<<31, 1<<32-1) {
			_, _, _, _ = r.Share(i), r.Reported(i), r.Elected(i), r.Holders(i)
			_, _, _ = r.Accepted(i), r.Expected(i), r.Active(i)
			s.Select(r.Number(), i, []wire.Hash{{}, wire.Sum("test/candidate")})
		}
	}
}

// someStates returns states from the middle of random runs, in every phase that they came to.
func someStates() []State {
	var states []State
	for seed := range 12 {
		p := &player{src: prng.New(wire.Sum("test/some"), fmt.Sprint(seed)), diverged: map[uint32]bool{}}
		l := Limits{Members: 1 + p.below(9), Witnesses: uint16(1 + p.below(5))}
		p.w = newWorld(panics{}, l, p.config(l), fmt.Sprint("some", seed))
		for n := range 150 {
			p.move()
			if n%10 == 9 {
				states = append(states, State{b: slices.Clone(p.w.s.Bytes()), l: p.w.s.l})
			}
		}
	}
	return states
}

// panics is a testingT for worlds outside of a test.
type panics struct{}

func (panics) Helper()                   {}
func (panics) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (panics) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// TestChangedBytesNeverPanic changes a few bytes of states from real runs, most in the fields that mean something, and
// exercises those that still open.
func TestChangedBytesNeverPanic(t *testing.T) {
	src := prng.New(wire.Sum("test/changes"), "changes")
	below := func(n uint32) uint32 { return uint32(src.Uint64n(uint64(n))) }
	states := someStates()
	opened := 0
	const tries = 1500
	for range tries {
		base := states[below(uint32(len(states)))]
		b := slices.Clone(base.b)
		for range 1 + below(3) {
			at := below(hEnd)
			switch below(4) {
			case 0:
				at = base.l.ring + below(ringRounds)*base.l.slot + below(base.l.filters+16)
			case 1:
				at = base.l.table + below(memberBytes*max(1, base.Count()))
			case 2:
				at = hPhase + below(hEnd-hPhase)
			}
			b[at] = []uint8{0, 1, 2, 255, b[at] + 1, b[at] - 1, b[at] ^ 1<<below(8), uint8(below(256))}[below(8)]
		}
		if s, err := Open(b); err == nil {
			opened++
			exercise(t, s)
		}
	}
	if opened < tries/10 || opened > tries*9/10 {
		t.Errorf("%d of %d changed states opened: the changes test either Open or the rest, not both", opened, tries)
	}
}

// FuzzOpen opens rubbish. The state it is made from is small, so that the fuzzer can find its way in it.
func FuzzOpen(f *testing.F) {
	for _, s := range someStates() {
		if len(s.b) < 10_000 {
			f.Add(s.b)
		}
	}
	f.Add(make([]byte, headerBytes))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Open(slices.Clone(b))
		if err == nil {
			exercise(t, s)
		}
	})
}
