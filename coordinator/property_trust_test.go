package coordinator

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator/dispute"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
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
	round  Round
	member Member
	liar   key.Public
}

// crook reports whether a member of that key is a crook: one in three, by chance of the world.
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
func (p *player) compute(c dispute.Check, liar key.Public) *trace {
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
			t.end(dispute.Outcome(t.result))
		}
	}
	p.traces[name] = t
	return t
}

// own returns what a member computes of a check: a crook lies about its own results, and about others when it says so.
func (p *player) own(c dispute.Check, i Member, lies bool) *trace {
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
			if m := p.verdict(c); p.hasPlace(m) {
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

// hasPlace reports whether a verdict finds a place for the dispute that it opens, if it opens one.
// Reports of members that serve nothing have half of the places.
func (p *player) hasPlace(verdict Message) bool {
	list, unserved := p.w.s.Disputes(), 0
	for _, d := range list {
		if d.Unserved {
			unserved++
		}
	}
	switch verdict.(type) {
	case Pass:
		return true
	case Unserved:
		return len(list) < record.DisputesMax && unserved < record.DisputesMax/2
	}
	return len(list) < record.DisputesMax
}

// verdict is that of an honest verifier.
func (p *player) verdict(c dispute.Check) Message {
	theirs, own := p.own(c, c.Member, true), p.compute(c, key.Public{})
	signed := p.w.sign(theirs.result)
	if dispute.Outcome(theirs.result) == dispute.Outcome(own.result) {
		return Pass{Round: c.Round, Member: c.Member, Commitment: signed, Gradient: gradient(own.before)}
	}
	if k := p.w.s.Key(c.Member); k[2]&1 == 1 && !c.Reassigned {
		return Unserved{Round: c.Round, Member: c.Member} // this crook serves nothing
	}
	return Accuse{Round: c.Round, Member: c.Member, Commitment: signed, Trace: own.blind(p.w.s.Key(c.Verifier))}
}

func (p *player) crookedVerdict(c dispute.Check) Message {
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
	return Accuse{Round: c.Round, Member: c.Member, Commitment: signed, Trace: own.blind(p.w.s.Key(c.Verifier))}
}

// votes lets the tie-breakers of a dispute vote.
func (p *player) votes(d dispute.Dispute, crooks bool) (moved bool) {
	w := p.w
	for _, v := range d.TieBreakers {
		d, open := w.s.Dispute(d.ID)
		if !open || d.Stage != dispute.StageTieBreaking || w.now >= d.DeadlineMs || w.s.Status(v.Member) == StatusEjected {
			return moved
		}
		if v.Vote != 0 {
			continue
		}
		k := w.s.Key(v.Member)
		own := p.own(d.Check, v.Member, crooks)
		m := TieBreak{Dispute: d.ID, Vote: dispute.VoteRight, Trace: own.blind(k)}
		accused := w.s.Key(d.Accused)
		switch {
		case p.crook(k) && !crooks, p.crook(k) && p.chance(30):
			continue
		case p.crook(k):
			m.Vote = dispute.Vote(1 + p.below(2))
		case d.Unserved && p.crook(accused) && accused[2]&1 == 1:
			m.Vote, m.Trace = dispute.VoteUnserved, wire.Hash{}
		case dispute.Outcome(p.own(d.Check, d.Accused, true).result) != dispute.Outcome(own.result):
			m.Vote = dispute.VoteWrong
		}
		p.must(w.apply(k, m))
		moved = true
	}
	return moved
}

// moves lets the sides of a dispute move.
func (p *player) moves(d dispute.Dispute, crooks bool) (moved bool) {
	w := p.w
	for side := range 2 {
		d, open := w.s.Dispute(d.ID)
		if !open || w.now >= d.DeadlineMs {
			return moved
		}
		i := []Member{d.Accused, d.Accuser}[side]
		if i == dispute.NoMember || w.s.Status(i) == StatusEjected {
			continue
		}
		k := w.s.Key(i)
		t := p.own(d.Check, i, true)
		if side == dispute.Accuser && t.root() != d.Traces[dispute.Accuser] && t.blind(k) != d.Traces[dispute.Accuser] {
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
	c := p.w.config
	return []uint64{0, 1, c.Stake, c.Stake + c.RegisterCost, c.Stake + c.RegisterCost + 7}[p.below(5)]
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
		n := uint32(p.w.s.Count())
		if n == 0 {
			return Claim{}
		}
		i := Member(p.below(n))
		if !p.crook(p.w.s.Key(i)) {
			return Claim{}
		}
		c := dispute.Commitment{Run: p.w.s.ID(), Round: p.w.s.Round(), Member: i}
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
		return Pass{Round: Round(p.below(5)), Member: Member(p.below(5))}
	case 1:
		return Accuse{Round: Round(p.below(5)), Member: Member(p.below(5))}
	case 2:
		return Equivocation{}
	case 3:
		return TieBreak{Dispute: number, Vote: dispute.Vote(p.below(5)), Trace: wire.Hash{uint8(p.below(2))}}
	case 4:
		return Defend{Dispute: number, Proof: make([]wire.Hash, p.below(9))}
	case 5:
		return Reveal{Dispute: number, Nodes: [bisect.Fan]wire.Hash{{1}}}
	case 6:
		return Evidence{Dispute: number, Bytes: some(100)}
	}
	return Unserved{Round: Round(p.below(5)), Member: Member(p.below(5))}
}
