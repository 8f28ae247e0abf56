package coordinator

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"

	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// exercise calls everything there is on a state that opened, and applies every kind of message as everybody. Nothing may
// panic, whatever the bytes say, and refused messages still change nothing.
func exercise(t *testing.T, s State, rounds int) {
	t.Helper()
	look(s)
	env := Env{NowMs: s.PhaseSince(), Height: s.h().PhaseHeight(), Seed: wire.Sum("test/exercise"), Referee: program{}}
	before := make([]byte, len(s.Bytes()))
	for range rounds {
		for i := range s.Count() {
			env.Sender = s.Key(i)
			for k, m := range everyMessage(s, i) {
				copy(before, s.Bytes())
				env.Value = 0
				if takesValue(m) && s.Escrow() < TokensMax/4 {
					env.Value = uint64(k) * (s.Config().Stake + s.Config().RegisterCost) / 4
				}
				if err := s.Apply(env, m); err != nil && !bytes.Equal(before, s.Bytes()) {
					t.Fatalf("%#v was refused with %q, but changed the state", m, err)
				}
			}
		}
		env.Sender, env.Value = key.Public{}, 0
		env.NowMs += s.Config().EpochMs
		env.Height += 25
		if err := s.Apply(env, Tick{}); err != nil {
			t.Fatal(err)
		}
		look(s)
	}
}

// everyMessage returns messages of member i that fit the state as far as they can.
func everyMessage(s State, i Member) []Message {
	params, _ := s.Params()
	m := Witness{Round: s.Round(), Params: params, Prev: params}
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
	list = append(list, everyMove(s, i)...)
	list = append(list, everyWord(s, i)...)
	if i%5 == 4 {
		list = append(list, Withdraw{}, Pause{})
	}
	return list
}

// everyMove returns messages about checks, disputes and tokens that fit the state as far as they can, by what it says itself.
func everyMove(s State, i Member) []Message {
	list := []Message{Claim{}, Deposit{Member: s.Key(i)}}
	for k, c := range s.Checks() {
		if c.Verifier != i || k > 9 {
			continue
		}
		v := dispute.Commitment{Run: s.ID(), Epoch: c.Epoch, Round: c.Round, Member: c.Member, Share: c.Share, Params: c.Params}
		signed := dispute.Signed{Commitment: v}
		if k, ok := known(s.Key(c.Member)); ok {
			signed = v.Sign(k)
		}
		list = append(list, []Message{
			Pass{Round: c.Round, Member: c.Member, Commitment: signed}, Unserved{Round: c.Round, Member: c.Member},
			Accuse{Round: c.Round, Member: c.Member, Commitment: signed},
		}[(int(i)+k)%3])
	}
	for _, d := range s.Disputes() {
		list = append(list, TieBreak{Dispute: d.ID, Vote: dispute.Vote(1 + i%3)}, Evidence{Dispute: d.ID, Bytes: []byte("{}")})
		t := (&trace{c: d.Case()}).end(dispute.Outcome(d.Commitment))
		if d.Stage == dispute.StageDefending {
			list = append(list, t.move(d, dispute.Accused))
		}
		list = append(list, Reveal{Dispute: d.ID}, Reveal{Dispute: d.ID, Nodes: d.Children})
		if i%4 == 3 {
			list = append(list, Concede{Dispute: d.ID})
		}
	}
	return list
}

// everyWord returns messages about windows and scores that fit the state as far as they can.
func everyWord(s State, i Member) []Message {
	pub := s.Key(i)
	list := []Message{RegisterValidator{}}
	if r, ok := s.At(s.Round()); ok {
		m := Commit{Signed: dispute.Signed{Commitment: commitment(r, i)}}
		if k, ok := known(pub); ok {
			m.Signed = m.Signed.Commitment.Sign(k)
		}
		list = append(list, m)
	}
	period, _ := s.Scoring()
	m := RevealScores{Period: period}
	for j := range min(s.Count(), 9) {
		m.Scores = append(m.Scores, score.Score{Member: j, Value: int16(j*9000) ^ int16(i)})
	}
	if !score.InOrder(m.Scores) {
		m.Scores = nil
	}
	list = append(list, CommitScores{Period: period, Hash: ScoresHash(s.ID(), pub, m)}, m)
	if i%7 == 6 {
		list = append(list, RetireValidator{})
	}
	return list
}

// lookAtScores calls the accessors of windows, validators and scores.
func lookAtScores(s State) {
	_, _, _ = s.Window(), s.Period(), s.DeadlineHeight()
	_, stage := s.Scoring()
	_ = stage.String()
	_, _ = s.Emitted()
	for _, v := range s.Validators() {
		_, _ = s.Validator(v.Key)
		_, _ = s.WillPay(Env{Sender: v.Key}, RetireValidator{})
		_, _ = s.WillPay(Env{Sender: v.Key}, Claim{})
	}
	_, _ = s.WillPay(Env{Sender: key.Public{1}, Value: TokensMax}, RegisterValidator{})
	_, _ = s.WillPay(Env{Sender: key.Public{1}, Value: TokensMax}, Join{})
	_, _, _ = s.Spare(), s.Quiet(), s.Debts()
	for _, p := range []uint32{0, 1, s.Period() - 2, s.Period() - 1, s.Period(), s.Period() + 1, 1<<32 - 1} {
		_, _ = s.Scores(p)
		_, _ = s.PeriodWindows(p)
	}
	_, _ = s.LastScores()
	for i := range s.Count() {
		_ = s.Immune(i)
	}
	for k := range Round(record.RingRounds) {
		if r, ok := s.At(s.slot(k).Number()); ok {
			_, _ = r.SliceSeed()
			_ = r.CommittedCount()
			for _, i := range []Member{0, s.Count(), Member(s.l.Members), 1<<32 - 1} {
				_, _ = r.Committed(i)
			}
		}
	}
}

// look calls every accessor.
func look(s State) {
	lookAtScores(s)
	_, _, _, _, _, _ = s.Hash(), s.Config(), s.Limits(), s.ID(), s.Deadline(), s.Phase().String()
	_, _, _, _ = s.Draining(), s.PausePending(), s.Redo(), s.RedoLost()
	_, _ = s.LastCheckpoint()
	for _, i := range s.Checkpointers() {
		_, _ = s.Key(i), s.Checkpointer(i)
	}
	_, _, _, _, _ = s.Checks(), s.Convictions(), s.ConvictionsTotal(), s.DisputesTotal(), s.PointsVerified()
	_, _ = s.Payout()
	for _, d := range s.Disputes() {
		_, _ = s.Dispute(d.ID)
		_, _, _ = d.Case(), d.Stage.String(), d.Level.String()
	}
	n := s.Count()
	for i := range n {
		_ = s.Member(i).Status.String()
		s.Find(s.Key(i))
	}
	for k := range Round(record.RingRounds) {
		r, ok := s.At(s.slot(k).Number())
		if !ok {
			continue
		}
		_, _, _, _, _ = r.Epoch(), r.Seed(), r.OpenedMs(), r.Quorum(), r.AcceptedCount()
		_, _ = r.Agreed()
		for _, p := range r.Reports() {
			_ = s.Key(p.Member)
		}
		for _, i := range append(r.Witnesses(), n, Member(s.l.Members), 1<<31, 1<<32-1) {
			_, _, _, _ = r.Share(i), r.Reported(i), r.Elected(i), r.Holders(i)
			_, _, _ = r.Accepted(i), r.Expected(i), r.Active(i)
			s.Select(r.Number(), i, []wire.Hash{{}, wire.Sum("test/candidate")})
		}
	}
}

// someStates returns states from the middle of so many random runs, in every phase that they came to, and from disputes.
func someStates(runs int) []State {
	var states []State
	for seed := range runs {
		p := &player{src: prng.New(wire.Sum("test/some"), fmt.Sprint(seed)), diverged: map[Member]bool{}}
		l := Limits{Members: 1 + p.below(9), Witnesses: uint16(1 + p.below(5))}
		p.scoreLimits(&l)
		p.w = newWorld(panics{}, l, p.config(l), fmt.Sprint("some", seed))
		for n := range 150 {
			p.move()
			if n%10 == 9 {
				states = append(states, State{b: slices.Clone(p.w.s.Bytes()), l: p.w.s.l})
			}
		}
	}
	for _, sequences := range []uint32{1, 2} {
		states = append(states, disputed(panics{}, sequences)...)
	}
	return states
}

// disputed returns states in which there are checks, disputes in every stage, and convictions.
func disputed(t testingT, sequences uint32) []State {
	w := arena(t, 7, sequences, trusting())
	var states []State
	keep := func() { states = append(states, State{b: slices.Clone(w.s.b), l: w.s.l}) }
	keep()
	c := w.s.Checks()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.apply(w.s.Key(c[0].Verifier), Unserved{Round: c[0].Round, Member: c[0].Member}))
	honest := compute(w.caseOf(c[1]), nil)
	liar := compute(w.caseOf(c[1]), nil)
	liar.result.Payload = wire.Sum("test/lie")
	liar.end(dispute.Outcome(liar.result))
	must(w.apply(w.s.Key(c[1].Verifier), Accuse{Round: 1, Member: c[1].Member, Commitment: w.sign(liar.result), Trace: honest.blind(w.s.Key(c[1].Verifier))}))
	keep()
	w.votes(2, func(i Member) (dispute.Vote, wire.Hash) { return dispute.VoteWrong, honest.root() })
	keep()
	for {
		d, ok := w.s.Dispute(2)
		if !ok {
			break
		}
		for side, p := range []*trace{liar, honest} {
			if m := p.move(d, side); m != nil {
				must(w.apply(w.s.Key([]Member{d.Accused, d.Accuser}[side]), m))
				keep()
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
	t.Parallel()
	src := prng.New(wire.Sum("test/changes"), "changes")
	below := func(n uint32) uint32 { return uint32(src.Uint64n(uint64(n))) }
	states := someStates(20)
	opened := 0
	const tries = 800
	for range tries {
		base := states[below(uint32(len(states)))]
		b := slices.Clone(base.b)
		for range 1 + below(3) {
			at := below(hEnd)
			switch below(11) {
			case 7:
				at = base.l.Seats + below(max(1, record.SeatBytes*base.l.Validators))
			case 8:
				at = base.l.Tallies + below(max(1, record.TalliesKept*base.l.Tally))
			case 9:
				at = base.l.Periods + below(max(1, record.BallotsKept*base.l.Period))
			case 10:
				at = base.l.Ring + below(record.RingRounds)*base.l.Slot + base.l.Commits + below(64)
			case 3:
				at = base.l.Checks + below(record.CheckBytes*4)
			case 4:
				at = base.l.Disputes + below(record.DisputeBytes*2)
			case 5:
				at = base.l.Convictions + below(record.ConvictionBytes)
			case 0:
				at = base.l.Ring + below(record.RingRounds)*base.l.Slot + below(base.l.Filters+16)
			case 1:
				at = base.l.Table + below(record.PlaceBytes*uint32(max(1, base.Count())))
			case 2:
				at = hPhase + below(hEnd-hPhase)
			}
			at = min(at, base.l.Total-1)
			b[at] = []uint8{0, 1, 2, 255, b[at] + 1, b[at] - 1, b[at] ^ 1<<below(8), uint8(below(256))}[below(8)]
		}
		if s, err := Open(b); err == nil {
			opened++
			exercise(t, s, 12)
		}
	}
	if opened < tries/10 || opened > tries*9/10 {
		t.Errorf("%d of %d changed states opened: the changes test either Open or the rest, not both", opened, tries)
	}
}

// FuzzOpen changes bytes of states from real runs as the fuzzer likes, and exercises those that still open. A change is three bytes
// of place and one of value: so that the fuzzer finds its way, it is not given tens of thousands of bytes that are mostly zero.
func FuzzOpen(f *testing.F) {
	var states []State
	for k, s := range someStates(3) {
		if k%9 == 0 {
			states = append(states, s)
		}
	}
	at := func(place uint32, value uint8) []byte {
		return []byte{uint8(place), uint8(place >> 8), uint8(place >> 16), value}
	}
	for k := range states {
		f.Add(uint16(k), append(at(hPhase, uint8(k)), at(PageBytes+mStatus, 3)...), uint32(0))
	}
	f.Add(uint16(0), at(hVersion, 9), uint32(7))
	f.Fuzz(func(t *testing.T, which uint16, changes []byte, cut uint32) {
		b := slices.Clone(states[int(which)%len(states)].b)
		b = b[:len(b)-int(min(cut, uint32(len(b))))]
		for ; len(changes) >= 4 && len(b) > 0; changes = changes[4:] {
			place := uint32(changes[0]) | uint32(changes[1])<<8 | uint32(changes[2])<<16
			b[place%uint32(len(b))] = changes[3]
		}
		if s, err := Open(b); err == nil {
			exercise(t, s, 2)
		}
	})
}
