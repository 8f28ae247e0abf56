package change

import (
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
)

// The checks that a round draws follow from its seed and from its members' doubts. A change has the
// differences from those that are drawn again. The checks themselves would be most of its bytes.

// roundBytes is the length of a check's first field, its round.
const roundBytes = 4

// check returns the record of a check, in use or not.
func (p *Picture) check(k uint32) record.Check {
	return p.b[p.layout.Checks+k*record.CheckBytes:][:record.CheckBytes]
}

// renewed returns the checks whose round is another one than in from.
func (p *Picture) renewed(from *Picture) (list []uint32) {
	for k := range p.layout.ChecksMax {
		if p.check(k).Round() != from.check(k).Round() {
			list = append(list, k)
		}
	}
	return list
}

// without returns the picture without these checks, but for their rounds.
func (p *Picture) without(checks []uint32) *Picture {
	q := p.clone()
	for _, k := range checks {
		clear(q.check(k)[roundBytes:])
	}
	return q
}

func (p *Picture) clone() *Picture {
	q := *p
	q.b = slices.Clone(p.b)
	return &q
}

// ended returns for each member how many of these checks it was the author of, and the verifier.
func (p *Picture) ended(checks []uint32) []uint32 {
	list := make([]uint32, p.layout.Members)
	for _, k := range checks {
		c := p.check(k)
		if i, v := uint32(c.Member()), uint32(c.Verifier()); c.Round() > 0 && max(i, v) < p.layout.Members {
			list[i]++
			list[v] += 1 << 16
		}
	}
	return list
}

// exchange puts the differences from what is drawn again in place of these checks, or the other way
// round.
func (p *Picture) exchange(checks []uint32) {
	if len(checks) == 0 {
		return
	}
	b := record.Buffer{B: slices.Clone(p.State()), Layout: p.layout}
	clear(b.B[b.Checks:b.Convictions])
	s, err := coordinator.Open(b.B)
	if err != nil {
		return // nor can others
	}
	drawn := map[coordinator.Round][][]byte{}
	for _, k := range checks {
		c := p.check(k)
		list, done := drawn[c.Round()]
		if !done {
			list = draw(b, s, c.Round())
		}
		if len(list) > 0 {
			for i, v := range list[0] {
				c[roundBytes+i] ^= v
			}
			list = list[1:]
		}
		drawn[c.Round()] = list
	}
}

// draw returns what is drawn of a round, after the round's number, in a state without checks, which
// it leaves without.
func draw(b record.Buffer, s coordinator.State, number coordinator.Round) (list [][]byte) {
	r, ok := s.At(number)
	now, open := s.At(s.Round())
	if !ok || !open || !r.Final() {
		return nil
	}
	var active []coordinator.Member
	params, _ := r.Agreed()
	d := dispute.Draw{Cases: dispute.Cases{Buffer: b}, Round: b.RoundSlot(number), Spans: r.Spans(), Params: params}
	for i := range s.Count() {
		if now.Active(i) {
			active = append(active, i)
		}
		d.Count(i, d.Round[b.Accepted:])
	}
	d.Prepare(now.Seed(), active)
	d.Begin(s.Config().VerificationPercent)
	from := uint32(0)
	r.Shares(func(i coordinator.Member, spans []batch.Span) {
		count := batch.Total(spans)
		if r.Accepted(i) && len(active) > 1 {
			d.Result(i, from, count, uint32(len(active)), 1<<31)
		}
		from += count
	})
	d.End()
	for k := range b.ChecksMax {
		if c := b.Check(k); c.Round() == number {
			list = append(list, slices.Clone(c[roundBytes:]))
			clear(c)
		}
	}
	return list
}
