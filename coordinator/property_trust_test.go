package coordinator

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// trustIn lets about half of the runs verify, with small shares, since the tests compute them, and as many want stakes or pay.
func (p *player) trustIn(c *Config) {
	if p.chance(50) {
		c.VerificationPercent = []uint8{1, 20, 50, 100}[p.below(4)]
		c.VerifyMs, c.DisputeMs = 1+uint64(p.below(60_000)), 1+uint64(p.below(20_000))
		c.StateHash = wire.Sum("test/fresh")
		c.BatchStart, c.BatchEnd = min(c.BatchStart, 5), min(c.BatchEnd, 5)
		c.UnbondMs = c.VerifyMs
	}
	if p.chance(50) {
		c.Stake, c.Rate = uint64(p.below(100)), uint64(p.below(4))
	}
}

// cased names a computation: of a check, with the lie told by one member, or honest.
type cased struct {
	round, member uint32
	liar          key.Public
}

// crook tells whether a member of that key is a crook: one in three, by chance of the world.
func (p *player) crook(k key.Public) bool {
	if p.crooked == nil {
		return false
	}
	is, known := p.crooked[k]
	if !known {
		is = p.chance(33)
		p.crooked[k] = is
	}
	return is
}

// compute returns what one who lies or not makes of a check.
func (p *player) compute(c Check, liar key.Public) *trace {
	if p.traces == nil {
		p.traces = map[cased]*trace{}
	}
	name := cased{c.Round, c.Member, liar}
	if t := p.traces[name]; t != nil {
		return t
	}
	var t *trace
	if of := p.w.caseOf(c); liar.IsZero() {
		t = compute(of, nil)
	} else {
		ops := (program{}).Ops(c.Sequences)
		at := uint32(liar[0]) % ops
		t = compute(of, func(op, _, _ uint32, words []uint32) []uint32 {
			if op == at {
				words[0] ^= 1 << (liar[1] & 31)
			}
			return words
		})
		if at == ops-1 {
			t.result.Payload = wire.Hash(liar)
			t.end(Outcome(t.result))
		}
	}
	p.traces[name] = t
	return t
}

// own returns what a member computes of a check: a crook lies about its own results, and about others when it says so.
func (p *player) own(c Check, i uint32, lies bool) *trace {
	if k := p.w.s.Key(i); lies && p.crook(k) {
		return p.compute(c, k)
	}
	return p.compute(c, key.Public{})
}

// trust lets everybody who is honest do what checks and disputes ask of it; with crooks they do as they like. Honest messages
// are never refused, and nobody who sends only such is ever ejected.
func (p *player) trust(crooks bool) {
	w := p.w
	if w.config.VerificationPercent == 0 {
		return
	}
	for _, c := range w.s.Checks() {
		verifier := w.s.Key(c.Verifier)
		if w.s.Status(c.Verifier) == StatusEjected || c.Disputed || w.now >= c.DeadlineMs || !slices.Contains(w.s.Checks(), c) {
			continue
		}
		if !p.crook(verifier) {
			if m := p.verdict(c); len(w.s.Disputes()) < disputesMax || m.kind() == kindPass {
				p.must(w.apply(verifier, m))
			}
		} else if crooks {
			_ = w.apply(verifier, p.crookedVerdict(c))
		}
	}
	for moved := true; moved; {
		moved = false
		for _, d := range w.s.Disputes() {
			moved = p.votes(d, crooks) || p.moves(d, crooks) || moved
		}
	}
	for _, c := range w.s.Convictions() {
		if !c.Offence.Lesser() && !p.crook(c.Key) {
			w.t.Fatalf("an honest member was convicted: %+v", c)
		}
	}
}

// verdict is that of an honest verifier.
func (p *player) verdict(c Check) Message {
	theirs, own := p.own(c, c.Member, true), p.compute(c, key.Public{})
	signed := p.w.sign(theirs.result)
	if Outcome(theirs.result) == Outcome(own.result) {
		return Pass{Round: c.Round, Member: c.Member, Commitment: signed, Gradient: gradient(own.before)}
	}
	if k := p.w.s.Key(c.Member); k[2]&1 == 1 && !c.Reassigned {
		return Unserved{Round: c.Round, Member: c.Member} // this crook serves nothing
	}
	return Accuse{Round: c.Round, Member: c.Member, Commitment: signed, Trace: own.root()}
}

func (p *player) crookedVerdict(c Check) Message {
	theirs, own := p.own(c, c.Member, true), p.own(c, c.Verifier, true)
	signed := p.w.sign(theirs.result)
	switch p.below(5) {
	case 0:
		return Pass{Round: c.Round, Member: c.Member, Commitment: signed, Gradient: gradient(theirs.before)}
	case 1:
		return Pass{Round: c.Round, Member: c.Member, Commitment: signed}
	case 2:
		return Unserved{Round: c.Round, Member: c.Member}
	}
	return Accuse{Round: c.Round, Member: c.Member, Commitment: signed, Trace: own.root()}
}

// votes lets the tie-breakers of a dispute vote.
func (p *player) votes(d Dispute, crooks bool) (moved bool) {
	w := p.w
	for _, v := range d.TieBreakers {
		d, open := w.s.Dispute(d.ID)
		if !open || d.Stage != StageTieBreaking || w.now >= d.DeadlineMs || w.s.Status(v.Member) == StatusEjected {
			return moved
		}
		if v.Vote != 0 {
			continue
		}
		k := w.s.Key(v.Member)
		own := p.own(d.Check, v.Member, crooks)
		m := TieBreak{Dispute: d.ID, Vote: VoteRight, Trace: own.root()}
		accused := w.s.Key(d.Accused)
		switch {
		case p.crook(k) && !crooks, p.crook(k) && p.chance(30):
			continue
		case p.crook(k):
			m.Vote = Vote(1 + p.below(2))
		case d.Unserved && p.crook(accused) && accused[2]&1 == 1:
			m.Vote, m.Trace = VoteUnserved, wire.Hash{}
		case Outcome(p.own(d.Check, d.Accused, true).result) != Outcome(own.result):
			m.Vote = VoteWrong
		}
		p.must(w.apply(k, m))
		moved = true
	}
	return moved
}

// moves lets the sides of a dispute move.
func (p *player) moves(d Dispute, crooks bool) (moved bool) {
	w := p.w
	for side := range 2 {
		d, open := w.s.Dispute(d.ID)
		if !open || w.now >= d.DeadlineMs {
			return moved
		}
		i := []uint32{d.Accused, d.Accuser}[side]
		if i == NoMember || w.s.Status(i) == StatusEjected {
			continue
		}
		k := w.s.Key(i)
		t := p.own(d.Check, i, true)
		if side == Accuser && t.root() != d.Traces[Accuser] {
			t = p.compute(d.Check, key.Public{})
		}
		m := t.move(d, side)
		if p.crook(k) {
			if !crooks || p.chance(20) {
				continue
			}
			if p.chance(5) {
				m = Concede{Dispute: d.ID}
			}
			if m != nil {
				moved = w.apply(k, m) == nil || moved
			}
			continue
		}
		if m != nil {
			p.must(w.apply(k, m))
			moved = true
		}
	}
	return moved
}

// tokens draws an amount to attach.
func (p *player) tokens() uint64 {
	return []uint64{0, 1, p.w.config.Stake, p.w.config.Stake + 7}[p.below(4)]
}

// spend lets all members claim what they are owed, or somebody send a message about tokens.
func (p *player) spend() {
	w := p.w
	if p.chance(50) {
		_ = w.applyWith(p.anybody(), p.tokens(), p.money())
		return
	}
	for i := range w.s.Count() {
		_ = w.apply(w.s.Key(i), Claim{})
	}
}

// money makes a message about tokens, or one that shows an equivocation.
func (p *player) money() Message {
	switch p.below(4) {
	case 0:
		return Deposit{Member: p.anybody()}
	case 1:
		return Fund{}
	case 2:
		n := p.w.s.Count()
		if n == 0 {
			return Claim{}
		}
		i := p.below(n)
		if !p.crook(p.w.s.Key(i)) {
			return Claim{}
		}
		c := Commitment{Run: p.w.s.ID(), Round: p.w.s.Round(), Member: i}
		m := Equivocation{A: p.w.sign(c)}
		c.Loss++
		m.B = p.w.sign(c)
		return m
	}
	return Claim{}
}

// rubbish makes a message about checks or disputes that fits nothing.
func (p *player) rubbish(some func(uint32) []byte) Message {
	number := p.below(4)
	if list := p.w.s.Disputes(); len(list) > 0 && p.chance(80) {
		number = list[p.below(uint32(len(list)))].ID
	}
	switch p.below(8) {
	case 0:
		return Pass{Round: p.below(5), Member: p.below(5)}
	case 1:
		return Accuse{Round: p.below(5), Member: p.below(5)}
	case 2:
		return Equivocation{}
	case 3:
		return TieBreak{Dispute: number, Vote: Vote(p.below(5)), Trace: wire.Hash{uint8(p.below(2))}}
	case 4:
		return Defend{Dispute: number, Proof: make([]wire.Hash, p.below(9))}
	case 5:
		return Reveal{Dispute: number, Nodes: [bisect.Fan]wire.Hash{{1}}}
	case 6:
		return Evidence{Dispute: number, Bytes: some(100)}
	}
	return Unserved{Round: p.below(5), Member: p.below(5)}
}

// TestOneHonestPartySuffices lets a liar be accused, with a verifier and tie-breakers that are honest or lie, fall silent or
// concede, in all ways, of which one at least is honest and plays. The liar is convicted, nobody honest is, and it takes no
// longer than four accusers can take.
func TestOneHonestPartySuffices(t *testing.T) {
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
				return t.end(Outcome(t.result))
			}
			return compute(of, bendAt(all[p.below(uint32(len(all)))]))
		}
		liar, honest := lie(), compute(of, nil)
		parties := map[uint32]*party{c.Member: {trace: liar, moves: -1}}
		if p.chance(30) {
			parties[c.Member].moves = int(p.below(4))
		}
		// The verifier's part, then those of the tie-breakers.
		good := map[uint32]bool{}
		play := func(i uint32, sure bool) *trace {
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
		accuse := Accuse{Round: c.Round, Member: c.Member, Commitment: w.sign(liar.result), Trace: own.root()}
		p.must(w.apply(w.s.Key(c.Verifier), accuse))
		id := w.s.DisputesTotal()
		d, _ := w.s.Dispute(id)
		sure := p.below(uint32(len(d.TieBreakers)))
		for k, v := range d.TieBreakers {
			own := play(v.Member, uint32(k) == sure && !good[c.Verifier])
			m := TieBreak{Dispute: id, Vote: VoteWrong, Trace: own.root()}
			if !good[v.Member] && p.chance(50) {
				m.Vote = VoteRight
			}
			if good[v.Member] || p.chance(70) {
				p.must(w.apply(w.s.Key(v.Member), m))
			}
		}
		_, took := w.fight(id, parties)
		if took > bound {
			rt.Fatalf("the dispute took %d ms, more than %d", took, bound)
		}
		if w.s.Status(c.Member) != StatusEjected {
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
		parties := map[uint32]*party{c.Member: {trace: honest, moves: -1}}
		liar := func(i uint32) *trace {
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
		accuse := Accuse{Round: c.Round, Member: c.Member, Commitment: w.sign(honest.result), Trace: liar(c.Verifier).root()}
		p.must(w.apply(w.s.Key(c.Verifier), accuse))
		id := w.s.DisputesTotal()
		d, _ := w.s.Dispute(id)
		for _, v := range d.TieBreakers {
			own := liar(v.Member)
			if p.chance(80) {
				p.must(w.apply(w.s.Key(v.Member), TieBreak{Dispute: id, Vote: Vote(1 + p.below(2)), Trace: own.root()}))
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
			putU8(w.s.place(uint32(i)), mDoubt, d)
		}
		a, _ := w.s.At(1)
		limits := w.s.chances(a, uint64(c.percent))
		total, got := uint64(0), [members]int{}
		for i := range uint32(members) {
			total += limits[w.s.doubt(i)]
		}
		want := uint64(c.percent) * members << 32 / 100
		if total > want || want-total > members*16 {
			t.Errorf("%+v: chances together are %d, want %d", c, total, want)
		}
		checks := 0
		for n := range draws {
			clear(w.s.b[w.s.l.checks:w.s.l.disputes])
			r := w.s.slot(w.s.Round())
			put32(w.s.b, r.at+rSeed, wire.Sum("test/draw", wire.AppendU32(nil, uint32(n))))
			w.s.drawChecks(w.env(key.Public{}), 1)
			for _, check := range w.s.Checks() {
				got[check.Member]++
				checks++
				if check.Verifier == check.Member {
					t.Fatalf("%+v checks itself", check)
				}
			}
		}
		for i, n := range got {
			limit := limits[w.s.doubt(uint32(i))]
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
	accuse := Accuse{Round: c.Round, Member: c.Member, Commitment: w.sign(liar.result), Trace: honest.root()}
	if err := w.apply(w.s.Key(c.Verifier), accuse); err != nil {
		f.Fatal(err)
	}
	voted := w.clone(f)
	voted.votes(1, func(uint32) (Vote, wire.Hash) { return VoteWrong, honest.root() })
	d, _ := voted.s.Dispute(1)
	descending := voted.clone(f)
	if err := descending.apply(w.s.Key(c.Member), liar.move(d, Accused)); err != nil {
		f.Fatal(err)
	}
	worlds := []*world{w, voted, descending}
	d, _ = descending.s.Dispute(1)
	for k, m := range []Message{
		liar.move(Dispute{ID: 1, Stage: StageDefending}, Accused), liar.move(d, Accused), honest.move(d, Accuser),
		Evidence{Dispute: 1, Bytes: honest.evidence(1, 0, 0)}, TieBreak{Dispute: 1, Vote: VoteWrong, Trace: honest.root()},
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
		_ = w.applyWith(w.s.Key(uint32(who)%w.s.Count()), value, m)
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
