package runlog

// stages, levels and offences have numbers, from 1; 0 stands for another, whose name follows. New ones go to the end.
var (
	stages   = []string{"none", "tie-breaking", "defending", "descending", "evidence"}
	levels   = []string{"none", "operations", "tiles", "slices"}
	offences = []string{"none", "wrong result", "equivocation", "false accusation", "false pass", "silence", "not serving", "absence", "contradiction"}
)

func appendTrust(p *pen, t *Trust) {
	p.bool(t.Whole)
	p.u8(t.Percent)
	for _, v := range []uint64{t.Stake, t.Rate, t.Treasury, t.Escrow, t.Verified} {
		p.uint(v)
	}
	for _, v := range []uint32{t.Drawn, t.Passed, t.Disputed, t.Convicted} {
		p.uint(uint64(v))
	}
	p.uint(uint64(len(t.Accounts)))
	for _, a := range t.Accounts {
		p.uint(uint64(a.Index))
		for _, v := range []uint64{a.Stake, a.Balance, a.Settled, a.Claimed} {
			p.uint(v)
		}
		p.u8(a.Doubt)
		p.u8(a.Strikes)
		p.uint(uint64(a.Passed))
	}
	p.uint(uint64(len(t.Checks)))
	for _, c := range t.Checks {
		for _, v := range []uint32{c.Round, c.Member, c.Step, c.Verifier, c.Sequences} {
			p.uint(uint64(v))
		}
		p.uint(c.DeadlineMs)
		p.bool(c.Disputed)
	}
	p.uint(uint64(len(t.Closed)))
	for _, s := range t.Closed {
		p.uint(uint64(s.Round))
		p.uint(uint64(s.Member))
	}
	p.uint(uint64(len(t.Disputes)))
	for _, d := range t.Disputes {
		appendDispute(p, d)
	}
	p.uint(uint64(len(t.Ended)))
	for _, id := range t.Ended {
		p.uint(uint64(id))
	}
	p.uint(uint64(len(t.Convictions)))
	for _, c := range t.Convictions {
		appendConviction(p, c)
	}
}

func parseTrust(e *eye) *Trust {
	t := &Trust{Whole: e.bool()}
	t.Percent = e.u8()
	t.Stake, t.Rate, t.Treasury, t.Escrow, t.Verified = e.u64(), e.u64(), e.u64(), e.u64(), e.u64()
	t.Drawn, t.Passed, t.Disputed, t.Convicted = e.u32(), e.u32(), e.u32(), e.u32()
	for range e.uint(membersMax) {
		a := Account{Index: uint32(e.uint(membersMax - 1)), Stake: e.u64(), Balance: e.u64(), Settled: e.u64(), Claimed: e.u64(), Doubt: e.u8(), Strikes: e.u8(), Passed: e.u32()}
		if e.bad {
			return nil
		}
		t.Accounts = append(t.Accounts, a)
	}
	for range e.uint(checksMax) {
		c := Check{Share: Share{e.u32(), e.u32()}, Step: e.u32(), Verifier: e.u32(), Sequences: e.u32(), DeadlineMs: e.u64(), Disputed: e.bool()}
		if e.bad {
			return nil
		}
		t.Checks = append(t.Checks, c)
	}
	for range e.uint(checksMax) {
		s := Share{e.u32(), e.u32()}
		if e.bad {
			return nil
		}
		t.Closed = append(t.Closed, s)
	}
	for range e.uint(disputesMax) {
		t.Disputes = append(t.Disputes, parseDispute(e))
	}
	for range e.uint(disputesMax) {
		t.Ended = append(t.Ended, e.u32())
	}
	for range e.uint(convictionsMax) {
		t.Convictions = append(t.Convictions, parseConviction(e))
	}
	return t
}

func appendDispute(p *pen, d Dispute) {
	for _, v := range []uint32{d.ID, d.Round, d.Member, d.Accuser, d.Op, d.Tile, d.Slice, d.Index} {
		p.uint(uint64(v))
	}
	p.u8(d.Depth)
	p.name(stages, d.Stage)
	p.name(levels, d.Level)
	p.uint(d.DeadlineMs)
	p.text(d.Commitment)
	for side := range 2 {
		p.text(d.Traces[side])
		p.text(d.Nodes[side])
		p.bool(d.Revealed[side])
	}
	p.bool(d.Unserved)
	p.bool(d.Defended)
	p.uint(uint64(len(d.Votes)))
	for _, v := range d.Votes {
		p.uint(uint64(v.Member))
		p.u8(v.Vote)
		p.text(v.Trace)
	}
}

func parseDispute(e *eye) Dispute {
	d := Dispute{ID: e.u32(), Share: Share{e.u32(), e.u32()}, Accuser: e.u32(), Op: e.u32(), Tile: e.u32(), Slice: e.u32(), Index: e.u32()}
	d.Depth, d.Stage, d.Level, d.DeadlineMs, d.Commitment = e.u8(), e.name(stages), e.name(levels), e.u64(), e.text()
	for side := range 2 {
		d.Traces[side], d.Nodes[side], d.Revealed[side] = e.text(), e.text(), e.bool()
	}
	d.Unserved, d.Defended = e.bool(), e.bool()
	for range e.uint(votesMax) {
		d.Votes = append(d.Votes, Vote{Member: e.u32(), Vote: e.u8(), Trace: e.text()})
	}
	return d
}

func appendConviction(p *pen, c Conviction) {
	for _, v := range []uint32{c.Number, c.Round, c.Member, c.By, c.FirstRound, c.LastRound, c.Results} {
		p.uint(uint64(v))
	}
	p.text(c.Key)
	p.name(offences, c.Offence)
	p.bool(c.Lesser)
	p.text(c.ByKey)
	p.uint(c.Slashed)
	p.text(c.Evidence)
	p.uint(c.AtMs)
}

func parseConviction(e *eye) Conviction {
	c := Conviction{Number: e.u32(), Round: e.u32(), Member: e.u32(), By: e.u32(), FirstRound: e.u32(), LastRound: e.u32(), Results: e.u32()}
	c.Key, c.Offence, c.Lesser, c.ByKey, c.Slashed, c.Evidence, c.AtMs = e.text(), e.name(offences), e.bool(), e.text(), e.u64(), e.text(), e.u64()
	return c
}
