package coordinator

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// TestOneHonestPartySuffices lets a liar be accused, with a verifier and tie-breakers that are honest or lie, fall silent or
// concede, in all ways, of which one at least is honest and plays. The liar is convicted, nobody honest is, and it takes no
// longer than four accusers can take. A liar that falls silent may have a strike instead, if all tie-breakers that voted, two at
// least, found it right.
func TestOneHonestPartySuffices(t *testing.T) {
	t.Parallel()
	var bases []*world
	for _, sequences := range []uint32{1, 2, 4} {
		bases = append(bases, arena(t, 6, sequences, trusting()))
	}
	depths := uint64(2 + 2 + 2)
	bound := trusting().VerifyMs + 4*(1+depths+1)*trusting().DisputeMs + 4*5000
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := &player{src: prng.New(wire.Sum("test/one", wire.AppendU64(nil, seed)), "one")}
		w := bases[p.below(3)].clone(rt)
		p.w = w
		checks := w.s.Checks()
		c := checks[p.below(uint32(len(checks)))]
		of := w.caseOf(c)
		all := places(of)
		lie := func() *trace {
			if len(all) == 0 || p.chance(20) {
				t := compute(of, nil)
				t.result.Work = wire.Sum("test/lie", wire.AppendU32(nil, p.below(3)))
				return t.end(dispute.Outcome(t.result))
			}
			return compute(of, bendAt(all[p.below(uint32(len(all)))]))
		}
		liar, honest := lie(), compute(of, nil)
		parties := map[Member]*party{c.Member: {trace: liar, moves: -1}}
		if p.chance(30) {
			parties[c.Member].moves = int(p.below(4))
		}
		// The verifier's part, then those of the tie-breakers.
		good := map[Member]bool{}
		play := func(i Member, sure bool) *trace {
			if sure || p.chance(40) {
				good[i] = true
				parties[i] = &party{trace: honest, moves: -1}
				return honest
			}
			parties[i] = &party{trace: lie(), moves: -1, loose: true}
			if p.chance(40) {
				parties[i].moves = int(p.below(4))
			}
			if p.chance(20) {
				parties[i].trace = liar
			}
			return parties[i].trace
		}
		own := play(c.Verifier, false)
		accuse := Accuse{Round: c.Round, Member: c.Member, Commitment: w.sign(liar.result), Trace: own.blind(w.s.Key(c.Verifier))}
		p.must(w.apply(w.s.Key(c.Verifier), accuse))
		id := w.s.DisputesTotal()
		d, _ := w.s.Dispute(id)
		sure := p.below(uint32(len(d.TieBreakers)))
		votes, wrong := 0, 0
		for k, v := range d.TieBreakers {
			own := play(v.Member, uint32(k) == sure && !good[c.Verifier])
			m := TieBreak{Dispute: id, Vote: dispute.VoteWrong, Trace: own.blind(w.s.Key(v.Member))}
			if !good[v.Member] && p.chance(50) {
				m.Vote = dispute.VoteRight
			}
			if good[v.Member] || p.chance(70) {
				p.must(w.apply(w.s.Key(v.Member), m))
				votes++
				if m.Vote == dispute.VoteWrong {
					wrong++
				}
			}
		}
		_, took := w.fight(id, parties)
		if took > bound {
			rt.Fatalf("the dispute took %d ms, more than %d", took, bound)
		}
		away := parties[c.Member].moves >= 0 && votes >= 2 && wrong == 0
		if st := w.s.Status(c.Member); st != StatusEjected && !(away && st == StatusDropped) {
			rt.Fatalf("the liar is %v; convictions %+v", w.s.Status(c.Member), w.s.Convictions())
		}
		for i := range good {
			if st := w.s.Status(i); st != StatusActive {
				rt.Fatalf("honest member %d is %v; convictions %+v", i, st, w.s.Convictions())
			}
		}
	})
}

// TestHonestAccusedIsNeverConvicted is the contrary: nobody but the accused is honest.
func TestHonestAccusedIsNeverConvicted(t *testing.T) {
	t.Parallel()
	var bases []*world
	for _, sequences := range []uint32{1, 2, 4} {
		bases = append(bases, arena(t, 6, sequences, trusting()))
	}
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := &player{src: prng.New(wire.Sum("test/accused", wire.AppendU64(nil, seed)), "accused")}
		w := bases[p.below(3)].clone(rt)
		p.w = w
		checks := w.s.Checks()
		c := checks[p.below(uint32(len(checks)))]
		of := w.caseOf(c)
		all := places(of)
		honest := compute(of, nil)
		parties := map[Member]*party{c.Member: {trace: honest, moves: -1}}
		liar := func(i Member) *trace {
			at := [3]uint32{99, 0, 0}
			if len(all) > 0 {
				at = all[p.below(uint32(len(all)))]
			}
			t := compute(of, bendAt(at))
			if p.chance(50) || len(all) == 0 {
				t.end(wire.Sum("test/lie", wire.AppendU32(nil, p.below(2))))
			}
			if p.chance(20) { // a leaf where none is
				t.ops = append(t.ops, wire.Hash{7})
			}
			if p.chance(10) {
				t = honest
			}
			parties[i] = &party{trace: t, moves: -1, loose: true}
			if p.chance(40) {
				parties[i].moves = int(p.below(5))
			}
			return t
		}
		accuse := Accuse{Round: c.Round, Member: c.Member, Commitment: w.sign(honest.result), Trace: liar(c.Verifier).blind(w.s.Key(c.Verifier))}
		p.must(w.apply(w.s.Key(c.Verifier), accuse))
		id := w.s.DisputesTotal()
		d, _ := w.s.Dispute(id)
		for _, v := range d.TieBreakers {
			own := liar(v.Member)
			if p.chance(80) {
				p.must(w.apply(w.s.Key(v.Member), TieBreak{Dispute: id, Vote: dispute.Vote(1 + p.below(2)), Trace: own.blind(w.s.Key(v.Member))}))
			}
		}
		w.fight(id, parties)
		if m := w.s.Member(c.Member); m.Status != StatusActive || m.Stake != w.config.Stake {
			rt.Fatalf("the accused, who is honest, ends as %+v; convictions %+v", m, w.s.Convictions())
		}
		if w.s.Status(c.Verifier) != StatusEjected {
			rt.Fatalf("the false accuser is %v", w.s.Status(c.Verifier))
		}
	})
}

// TestChances counts how often members are checked: percent of the results all together, in proportion to their doubt, and
// those at the bottom too.
func TestChances(t *testing.T) {
	for _, c := range []struct {
		percent uint8
		doubts  []uint8 // of the first members; the others are newcomers
	}{
		{1, nil}, {5, []uint8{1, 1, 1, 16}}, {10, nil}, {30, []uint8{16, 16, 1, 1, 4}}, {90, []uint8{1, 1, 2, 16}}, {100, []uint8{1, 16}},
	} {
		config := trusting()
		config.VerificationPercent = c.percent
		const members, draws = 12, 4000
		w := arena(t, members, 1, config)
		for i, d := range c.doubts {
			w.s.place(Member(i)).SetDoubt(d)
		}
		a, _ := w.s.At(1)
		w.s.prepareChecks(a, Env{}.work())
		w.s.h().SetCursor(0)
		limits := w.s.cases().Chances(uint64(c.percent))
		w.s.cases().End()
		total, got := uint64(0), [members]int{}
		for i := range Member(members) {
			total += limits[w.s.cases().Doubt(i)]
		}
		want := uint64(c.percent) * members << 32 / 100
		if total > want || want-total > members*16 {
			t.Errorf("%+v: chances together are %d, want %d", c, total, want)
		}
		checks := 0
		for n := range draws {
			clear(w.s.b[w.s.l.Checks:w.s.l.Disputes])
			r := w.s.slot(w.s.Round())
			r.b.SetSeed(wire.Sum("test/draw", wire.AppendU32(nil, uint32(n))))
			a.keepLine()
			w.s.prepareChecks(a, Env{}.work())
			w.s.h().SetCursor(0)
			w.s.drawChecks(w.env(key.Public{}), a, Env{}.work())
			w.s.end()
			for _, check := range w.s.Checks() {
				got[check.Member]++
				checks++
				if check.Verifier == check.Member {
					t.Fatalf("%+v checks itself", check)
				}
			}
		}
		for i, n := range got {
			limit := limits[w.s.cases().Doubt(Member(i))]
			expected := float64(limit) / (1 << 32) * draws
			if limit == 0 {
				t.Errorf("%+v: member %d is never checked", c, i)
			}
			if d := float64(n) - expected; d*d > 25*(expected+1) { // five standard deviations
				t.Errorf("%+v: member %d was checked %d times, want about %.0f", c, i, n, expected)
			}
		}
		expected := float64(c.percent) / 100 * members * draws
		if d := float64(checks) - expected; d*d > 25*(expected+1) {
			t.Errorf("%+v: %d checks in all, want about %.0f", c, checks, expected)
		}
	}
}

// FuzzApply applies messages that the fuzzer makes up, by whom it likes, to a run in which there are checks and a dispute.
func FuzzApply(f *testing.F) {
	w := arena(f, 4, 2, trusting())
	c := w.s.Checks()[0]
	honest := compute(w.caseOf(c), nil)
	liar := compute(w.caseOf(c), bendAt([3]uint32{1, 0, 0}))
	accuse := Accuse{Round: c.Round, Member: c.Member, Commitment: w.sign(liar.result), Trace: honest.blind(w.s.Key(c.Verifier))}
	if err := w.apply(w.s.Key(c.Verifier), accuse); err != nil {
		f.Fatal(err)
	}
	voted := w.clone(f)
	voted.votes(1, func(Member) (dispute.Vote, wire.Hash) { return dispute.VoteWrong, honest.root() })
	d, _ := voted.s.Dispute(1)
	descending := voted.clone(f)
	if err := descending.apply(w.s.Key(c.Member), liar.move(d, dispute.Accused)); err != nil {
		f.Fatal(err)
	}
	worlds := []*world{w, voted, descending}
	d, _ = descending.s.Dispute(1)
	for k, m := range []Message{
		liar.move(dispute.Dispute{ID: 1, Stage: dispute.StageDefending}, dispute.Accused), liar.move(d, dispute.Accused), honest.move(d, dispute.Accuser),
		Evidence{Dispute: 1, Bytes: honest.evidence(1, 0, 0)}, TieBreak{Dispute: 1, Vote: dispute.VoteWrong, Trace: honest.blind(w.s.Key(c.Verifier))},
		Concede{Dispute: 1}, accuse, Claim{}, Fund{}, Deposit{Member: w.s.Key(0)},
		Pass{Round: c.Round, Member: c.Member, Commitment: accuse.Commitment}, Unserved{Round: 1, Member: 2},
		Equivocation{A: accuse.Commitment, B: w.sign(honest.result)},
	} {
		f.Add(uint8(k), uint8(k), uint16(k*3000), uint64(k), Append(nil, m))
	}
	f.Fuzz(func(t *testing.T, which, who uint8, later uint16, value uint64, b []byte) {
		m, err := ParseMessage(b)
		if err != nil {
			return
		}
		w := worlds[which%3].clone(t)
		w.now += uint64(later)
		_ = w.applyWith(w.s.Key(Member(who)%w.s.Count()), value, m)
		for range 3 {
			w.now += 30_000
			if err := w.apply(key.Public{}, Tick{}); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(Append(nil, m), b) {
			t.Errorf("%x is not the encoding of %#v", b, m)
		}
		_ = fmt.Sprint(w.s.Convictions())
	})
}
