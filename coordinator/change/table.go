package change

import "github.com/entrain-network/entrain/coordinator/internal/record"

// table is equal records in the buffer, of words or of bytes, or a bitmap of records of one bit.
type table struct {
	at, count, stride uint32
	word              uint32 // bytes of a word: 4, 1, or 0 for bits
	accepted          bool   // the bits of a round's accepted results
	checks            bool
}

// columns returns where the columns begin.
func (t table) columns() (list []uint32) {
	if t.word == 0 {
		return []uint32{t.at}
	}
	for at := t.at; at < t.at+t.stride; at += t.word {
		list = append(list, at)
	}
	return list
}

// beside returns what reads the words before and after one of each record, nil if there are none.
func (t table) beside(b []byte, at uint32) func() [][]uint32 {
	if t.word != 4 || t.stride == 4 {
		return nil
	}
	return func() (list [][]uint32) {
		for _, o := range []uint32{at - 4, at + 4} {
			if o >= t.at && o < t.at+t.stride {
				list = append(list, t.read(b[o:], nil))
			}
		}
		return list
	}
}

// tables cuts a picture into tables. Every byte but those in gaps is in one of them. The first say
// who took part in the last rounds, and whose checks have ended, which decides most of the others.
func (p *Picture) tables() []table {
	var first, others []table
	for _, t := range p.inOrder() {
		if t.accepted || t.checks {
			first = append(first, t)
		} else {
			others = append(others, t)
		}
	}
	return append(first, others...)
}

// inOrder returns the tables in the order of the buffer.
func (p *Picture) inOrder() []table {
	c := cutter{gaps: p.gaps}
	l := p.layout
	c.words(0, record.HeaderBytes)
	c.records(l.Table, l.Members, record.PlaceBytes)
	c.records(l.Redo, record.RedoMax, record.SpanBytes)
	for k := range uint32(record.RingRounds) {
		at := l.Ring + k*l.Slot
		c.words(at, record.SlotBytes)
		c.words(at+l.Elected, l.Witnesses*record.ElectedBytes)
		c.records(at+l.Reports, l.Witnesses, record.ReportBytes)
		c.bits(at+l.Active, l.Members)
		c.bits(at+l.Expected, l.Members)
		c.bits(at+l.Accepted, l.Members)
		c.list[len(c.list)-1].accepted = true
		c.bytes(at+l.Counts, l.Members)
		c.bytes(at+l.Filters, l.FiltersLen)
		if l.Buckets {
			c.records(at+l.Commits, l.Members, record.CommitBytes)
		}
		if l.Speeds {
			c.records(at+l.Shares, l.Members, record.ShareBytes)
		}
	}
	c.records(l.Checks, l.ChecksMax, record.CheckBytes)
	c.list[len(c.list)-1].checks = true
	c.words(l.Disputes, record.DisputesMax*record.DisputeBytes)
	c.records(l.Convictions, record.ConvictionsMax, record.ConvictionBytes)
	c.records(l.Seats, 2*l.Validators, record.SeatBytes)
	if l.Validators > 0 {
		for k := range uint32(record.TalliesKept) {
			c.words(l.Tallies+k*l.Tally, record.TallyBytes)
			c.records(l.Tallies+k*l.Tally+record.TallyBytes, l.Members, record.WorkBytes)
		}
		for k := range uint32(record.BallotsKept) {
			at := l.Periods + k*l.Period
			c.words(at, record.PeriodBytes)
			c.records(at+record.PeriodBytes, l.Validators, record.BallotBytes)
			c.bytes(at+record.PeriodBytes+record.BallotBytes*l.Validators, 2*l.Members*l.Validators)
		}
	}
	c.fill(l.Total)
	for _, g := range p.gaps {
		c.words(g.hashes, g.count*hashBytes)
	}
	return c.list
}

// cutter lists tables in the order of the buffer.
type cutter struct {
	list []table
	gaps []gap  // that are left
	end  uint32 // of the last table
}

// fill makes a table of the bytes up to at, without gaps.
func (c *cutter) fill(at uint32) {
	for len(c.gaps) > 0 && c.gaps[0].from*record.PageBytes < at {
		c.add(table{at: c.end, count: c.gaps[0].from*record.PageBytes - c.end, stride: 1, word: 1})
		c.end, c.gaps = c.gaps[0].to*record.PageBytes, c.gaps[1:]
	}
	if c.end < at {
		c.add(table{at: c.end, count: at - c.end, stride: 1, word: 1})
	}
}

func (c *cutter) add(t table) {
	if t.count > 0 {
		c.list = append(c.list, t)
		c.end = t.at + t.count*t.stride
	}
}

// bits makes a table of a bitmap. The bits of its last byte that mean nobody are zero, and stay so.
func (c *cutter) bits(at, count uint32) {
	c.fill(at)
	c.list = append(c.list, table{at: at, count: count})
	c.end = at + (count+7)/8
}

func (c *cutter) records(at, count, stride uint32) {
	c.fill(at)
	c.add(table{at: at, count: count, stride: stride, word: 4})
}

func (c *cutter) words(at, bytes uint32) { c.records(at, bytes/4, 4) }

func (c *cutter) bytes(at, bytes uint32) {
	c.fill(at)
	c.fill(at + bytes)
}
