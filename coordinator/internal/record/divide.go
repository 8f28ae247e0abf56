package record

import "github.com/entrain-network/entrain/batch"

// Divide does a step of dividing the batch of round r in proportion to the speeds of its members,
// none of which gets more than most sequences. It returns the next step, or batch.Steps. The places
// have the round's line of trainers. What has been found so far is in the header and the places.
func (b Buffer) Divide(r Slot, most, step uint32) (next uint32) {
	h := b.Header()
	d := batch.Division[*line]{Table: &line{b, r}, Trainers: r.ActiveLen(), Total: r.Batch(), Most: most}
	if step > 0 {
		d.Progress = batch.Progress{
			Left: h.Stream(0), Weight: h.Stream(1), Bar: batch.Bar{Least: h.Stream(2), Over: h.Drawn()},
			Above: uint32(h.Stream(3) >> 32), Below: uint32(h.Stream(3)),
		}
	}
	next = d.Step(step)
	h.SetStream(0, d.Left)
	h.SetStream(1, d.Weight)
	h.SetStream(2, d.Bar.Least)
	h.SetStream(3, uint64(d.Above)<<32|uint64(d.Below))
	h.SetDrawn(d.Bar.Over)
	return next
}

// DivideUnits returns what a step of Divide takes on Solana for each member, in compute units.
func DivideUnits(step uint32) uint64 {
	if step >= batch.Rounding && step < batch.Giving {
		return 60
	}
	return 110
}

// line is a round's line of trainers, whose order by speeds is in the places' verifiers.
type line struct {
	Buffer
	of Slot
}

func (t *line) share(p uint32) Share { return t.Share(t.of, Member(t.Place(Member(p)).Line())) }

func (t *line) Weight(p uint32) uint32 { return t.share(p).Speed() }
func (t *line) Order(k uint32) uint32  { return uint32(t.Place(Member(k)).Verifier()) }
func (t *line) SetOrder(k, p uint32)   { t.Place(Member(k)).SetVerifier(uint16(p)) }

func (t *line) Rough(p uint32) (count uint32, between bool) {
	v := t.share(p)
	return v.Count(), v.From() > 0
}

func (t *line) SetRough(p, count uint32, between bool) {
	v := t.share(p)
	v.SetCount(count)
	v.SetFrom(uint32(flag(between)))
}

func (t *line) Give(p, from, count uint32) {
	v := t.share(p)
	v.SetFrom(from)
	v.SetCount(count)
}
