package runlog

// headFields are the fields of a head that are numbers, in the order of the format.
func headFields(h *Head) []*uint32 {
	return []*uint32{&h.Steps, &h.Capacity, &h.SeqTokens, &h.Epoch, &h.Round, &h.Step, &h.Present, &h.Rollbacks, &h.ParamsRound, &h.Saved.Epoch}
}

// headTexts are those that are texts.
func headTexts(h *Head) []*string {
	return []*string{&h.Run, &h.ID, &h.Chain, &h.Own, &h.Params, &h.Saved.Params, &h.Saved.Manifest, &h.Saved.By}
}

func (c *codec) standing(p *pen, s *Standing) {
	h := s.Head
	p.uint(s.Height)
	p.uint(s.TimeMs)
	for _, f := range headTexts(&h) {
		p.text(*f)
	}
	for _, f := range headFields(&h) {
		p.uint(uint64(*f))
	}
	p.name(words, h.Phase)
	p.uint(h.SinceMs)
	p.uint(h.DeadlineMs)
	p.uint(h.Points)
	p.uint(h.Retired)
	p.u8(h.Overlap)
	p.u8(h.MissedMax)
	p.u8(h.Draining)
	p.bool(h.Pausing)

	p.uint(uint64(len(s.Members)))
	for _, m := range s.Members {
		c.member(p, m)
	}
	p.uint(uint64(len(s.Rounds)))
	for _, r := range s.Rounds {
		appendRound(p, r)
	}
}

func (c *codec) parseStanding(e *eye) *Standing {
	s := &Standing{Height: e.u64(), TimeMs: e.u64()}
	h := &s.Head
	for _, f := range headTexts(h) {
		*f = e.text()
	}
	for _, f := range headFields(h) {
		*f = e.u32()
	}
	h.Phase = e.name(words)
	h.SinceMs, h.DeadlineMs, h.Points, h.Retired = e.u64(), e.u64(), e.u64(), e.u64()
	h.Overlap, h.MissedMax, h.Draining, h.Pausing = e.u8(), e.u8(), e.u8(), e.bool()

	for range e.uint(membersMax) {
		m := c.parseMember(e)
		if e.bad {
			return nil
		}
		s.Members = append(s.Members, m)
	}
	for range e.uint(roundsMax) {
		r := parseRound(e)
		if e.bad {
			return nil
		}
		s.Rounds = append(s.Rounds, r)
	}
	return s
}

// identity is the part of a member's row that changes seldom.
func (m Member) identity() Member {
	return Member{Key: m.Key, Speed: m.Speed, JoinedMs: m.JoinedMs, JoinedEpoch: m.JoinedEpoch, LeftMs: m.LeftMs, LeftRound: m.LeftRound}
}

// known is the row told of before.
func (c *codec) known(i uint32) Member {
	for uint32(len(c.members)) <= i {
		c.members = append(c.members, Member{})
	}
	return c.members[i]
}

// member writes the place, doubled, plus 1 if the identity follows; the identity; the counters.
func (c *codec) member(p *pen, m Member) {
	known := c.known(m.Index)
	full := known.identity() != m.identity()
	p.uint(uint64(m.Index)<<1 | uint64(bit(full)))
	if full {
		p.text(m.Key)
		p.uint(uint64(m.Speed))
		p.uint(m.JoinedMs)
		p.uint(uint64(m.JoinedEpoch))
		p.uint(m.LeftMs)
		p.uint(uint64(m.LeftRound))
	}
	p.name(words, m.Status)
	p.uint(m.Points)
	p.uint(uint64(m.Results))
	p.u8(m.Missed)
	p.u8(m.Idle)
	c.members[m.Index] = m
}

func (c *codec) parseMember(e *eye) Member {
	head := e.uint(2*membersMax - 1)
	if e.bad {
		return Member{}
	}
	i := uint32(head >> 1)
	known := c.known(i)
	m := known.identity()
	m.Index = i
	if head&1 == 1 {
		m = Member{Index: i, Key: e.text(), Speed: e.u32(), JoinedMs: e.u64(), JoinedEpoch: e.u32(), LeftMs: e.u64(), LeftRound: e.u32()}
		if m.identity() == known.identity() {
			e.fail() // need not have been said
		}
	}
	m.Status, m.Points, m.Results, m.Missed, m.Idle = e.name(words), e.u64(), e.u32(), e.u8(), e.u8()
	if !e.bad {
		c.members[i] = m
	}
	return m
}

func bit(v bool) uint8 {
	if v {
		return 1
	}
	return 0
}

func appendRound(p *pen, r Round) {
	for _, v := range []uint32{r.Number, r.Epoch, r.Step, r.Batch, r.Attests, r.Quorum, r.AcceptedCount} {
		p.uint(uint64(v))
	}
	p.uint(r.OpenedMs)
	p.text(r.Seed)
	p.text(r.Agreed)
	p.u8(bit(r.Final) | bit(len(r.Sequences) > 0)<<1)
	p.uint(uint64(len(r.Witnesses)))
	for _, w := range r.Witnesses {
		p.uint(uint64(w.Member)<<2 | uint64(bit(w.Reported))<<1 | uint64(bit(w.Complete)))
	}
	p.set(r.Active)
	p.set(r.Expected)
	p.set(r.Accepted)
	if len(r.Sequences) > 0 {
		p.uint(uint64(len(r.Sequences)))
		for _, n := range r.Sequences {
			p.uint(uint64(n))
		}
	}
}

func parseRound(e *eye) Round {
	r := Round{Number: e.u32(), Epoch: e.u32(), Step: e.u32(), Batch: e.u32(), Attests: e.u32(), Quorum: e.u32(), AcceptedCount: e.u32()}
	r.OpenedMs, r.Seed, r.Agreed = e.u64(), e.text(), e.text()
	flags := e.u8()
	r.Final = flags&1 == 1
	for range e.uint(witnessesMax) {
		v := e.uint(4*membersMax - 1)
		r.Witnesses = append(r.Witnesses, Witness{Member: uint32(v >> 2), Reported: v>>1&1 == 1, Complete: v&1 == 1})
	}
	r.Active, r.Expected, r.Accepted = e.set(), e.set(), e.set()
	switch flags >> 1 {
	case 0:
	case 1:
		n := e.uint(membersMax)
		if n == 0 {
			e.fail()
		}
		for range n {
			r.Sequences = append(r.Sequences, e.u32())
		}
	default:
		e.fail()
	}
	return r
}
