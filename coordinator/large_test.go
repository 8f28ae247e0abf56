package coordinator

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// large is a run of many members, all of them active, in its first round that attests another.
type large struct {
	s   State
	env Env
}

func newLarge(tb testing.TB, members uint32, percent uint8) *large {
	tb.Helper()
	c := testConfig()
	if percent > 0 {
		c = trusting()
		c.VerificationPercent, c.Stake = percent, 0
	}
	c.BatchStart, c.BatchEnd = members, members
	l := &large{env: Env{NowMs: bornMs, Seed: wire.Sum("test/large")}}
	s, err := New(Limits{Members: members, Witnesses: WitnessesMax}, c, l.env)
	if err != nil {
		tb.Fatal(err)
	}
	l.s = s
	l.fill(members)
	l.tick(tb, c.WaitingMs)
	for i := range Member(members) {
		if uint32(i)+1 < members {
			putStatus(s.place(i), StatusReady)
		}
	}
	l.send(tb, Member(members)-1, Ready{Epoch: 1, Params: c.ModelHash})
	l.reports(tb, WitnessesMax)
	return l
}

// fill puts n members into the table directly: joining costs a search each, which for all of them takes a while.
func (l *large) fill(n uint32) {
	for i := range Member(n) {
		b := l.s.place(i)
		var k key.Public
		binary.LittleEndian.PutUint32(k[28:], uint32(i)+1)
		b.SetKey(k)
		putStatus(b, StatusWaiting)
		b.SetDoubt(dispute.DoubtNew)
	}
	l.s.h().SetCount(Member(n))
}

func (l *large) tick(tb testing.TB, ms uint64) {
	tb.Helper()
	l.env.NowMs += ms
	l.env.Sender = key.Public{}
	if err := mirrored(l.s, l.env, Tick{}); err != nil {
		tb.Fatal(err)
	}
}

func (l *large) send(tb testing.TB, i Member, m Message) {
	tb.Helper()
	l.env.Sender = l.s.Key(i)
	if err := mirrored(l.s, l.env, m); err != nil {
		tb.Fatalf("%T: %v", m, err)
	}
}

// report returns the report of a witness that holds everything. Its filter is empty, which costs the same to check.
func (l *large) report() Witness {
	r, _ := l.s.At(l.s.Round())
	params, _ := l.s.Params()
	m := Witness{Round: r.Number(), Complete: true, Params: params, Prev: params, Commitments: make([]byte, r.Filter().Bytes())}
	if a, ok := l.s.At(r.Attests()); ok {
		m.Held = append(m.Held, a.expected()...)
		for len(m.Held) > 0 && m.Held[len(m.Held)-1] == 0 {
			m.Held = m.Held[:len(m.Held)-1]
		}
	}
	return m
}

// reports sends the reports of the first n witnesses of the round, or of all if there are fewer.
func (l *large) reports(tb testing.TB, n int) {
	tb.Helper()
	m := l.report()
	r, _ := l.s.At(m.Round)
	list := r.Witnesses()
	for _, i := range list[:min(n, len(list))] {
		l.send(tb, i, m)
	}
}

// TestTenThousandMembers takes the largest run through a round: everybody is paid, and the state is still sound.
func TestTenThousandMembers(t *testing.T) {
	l := newLarge(t, MembersMax, 0)
	l.reports(t, WitnessesMax)
	a, _ := l.s.At(1)
	if l.s.Round() != 3 || a.AcceptedCount() != MembersMax || l.s.PointsTotal() != MembersMax {
		t.Errorf("round %d, %d accepted, %d points", l.s.Round(), a.AcceptedCount(), l.s.PointsTotal())
	}
	if _, err := Open(l.s.Bytes()); err != nil {
		t.Error(err)
	}
	// Half of them fail, every other one: far more spans come back than the queue holds, and the rest is counted.
	m := l.report()
	for i := range m.Held {
		m.Held[i] &= 0x55
	}
	m.Complete = false
	l.tick(t, l.s.Config().RoundTrainMs)
	r, _ := l.s.At(m.Round)
	for _, i := range r.Witnesses() {
		l.send(t, i, m)
	}
	waiting := uint64(0)
	for _, v := range l.s.Redo() {
		waiting += uint64(v.Count)
	}
	next, _ := l.s.At(4)
	for _, v := range next.Spans()[:record.SpansMax-1] {
		waiting += uint64(v.Count)
	}
	if lost := l.s.RedoLost(); lost == 0 || lost+waiting != MembersMax/2 {
		t.Errorf("of %d sequences %d wait and %d are lost", MembersMax/2, waiting, lost)
	}
	if _, err := Open(l.s.Bytes()); err != nil {
		t.Error(err)
	}
}

// TestTenThousandChecks verifies in the largest run: of one in ten results, and of all, as far as the table goes.
func TestTenThousandChecks(t *testing.T) {
	for _, percent := range []uint8{10, 100} {
		l := newLarge(t, MembersMax, percent)
		l.reports(t, WitnessesMax)
		checks := l.s.Checks()
		verifiers := map[Member]bool{}
		for _, c := range checks {
			verifiers[c.Verifier] = true
			if c.Verifier == c.Member || c.Sequences != 1 {
				t.Fatalf("check %+v", c)
			}
		}
		if len(verifiers) < len(checks)-1 { // a swap at the end of the line may give one two
			t.Errorf("%d %%: %d checks by %d verifiers", percent, len(checks), len(verifiers))
		}
		if percent == 10 && (len(checks) < 850 || len(checks) > 1150) || percent == 100 && len(checks) != MembersMax/4 {
			t.Errorf("%d %%: %d checks", percent, len(checks))
		}
		if _, err := Open(l.s.Bytes()); err != nil {
			t.Error(err)
		}
		// All of them end at once, and so does the first dispute, for want of anybody's move.
		l.env.Referee = program{}
		l.send(t, checks[0].Verifier, Unserved{Round: 1, Member: checks[0].Member})
		l.tick(t, l.s.Config().VerifyMs)
		if len(l.s.Checks()) > 0 || len(l.s.Disputes()) > 0 {
			t.Errorf("%d %%: %d checks and %d disputes are left", percent, len(l.s.Checks()), len(l.s.Disputes()))
		}
		if _, err := Open(l.s.Bytes()); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkApply is the cost of one message of each kind. "witness" only records; "end of a round" is the last witness's
// report, which settles the round before and opens the next.
func BenchmarkApply(b *testing.B) {
	for _, members := range []uint32{256, MembersMax} {
		base := newLarge(b, members, 10)
		last := base.s.Count() - 1
		run := func(name string, n int, m func(l *large) (Member, Message)) {
			b.Run(fmt.Sprintf("%s/members=%d", name, members), func(b *testing.B) {
				l := &large{s: State{b: make([]byte, len(base.s.b)), l: base.s.l}, env: base.env}
				for b.Loop() {
					b.StopTimer()
					copy(l.s.b, base.s.b)
					l.reports(b, n)
					i, msg := m(l)
					b.StartTimer()
					l.send(b, i, msg)
				}
			})
		}
		run("tick", 0, func(*large) (Member, Message) { return last, Tick{} })
		run("withdraw", 0, func(*large) (Member, Message) { return last, Withdraw{} })
		witness := func(n int) func(l *large) (Member, Message) {
			return func(l *large) (Member, Message) {
				r, _ := l.s.At(l.s.Round())
				return r.Witnesses()[n], l.report()
			}
		}
		run("witness", 0, witness(0))
		run("end of a round", WitnessesMax-1, witness(WitnessesMax-1))
	}
}

func BenchmarkHash(b *testing.B) {
	for _, members := range []uint32{256, MembersMax} {
		l := newLarge(b, members, 0)
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			b.SetBytes(int64(len(l.s.b)))
			for b.Loop() {
				l.s.Hash()
			}
		})
		b.Run(fmt.Sprintf("open/members=%d", members), func(b *testing.B) {
			for b.Loop() {
				if _, err := Open(l.s.b); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
