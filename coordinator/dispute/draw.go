package dispute

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// The draw of checks. What it has drawn so far is in the header and the table of members, since a
// host may work it off in several messages.

// Draw draws checks of the accepted results of a round. The round's parameters are Params, its
// batch is Spans.
type Draw struct {
	Cases
	Round      record.Slot
	Spans      []batch.Span
	Params     wire.Hash
	DeadlineMs uint64

	limits [DoubtMax + 1]uint64
}

// Count counts the accepted results in taken of members in place i, for a draw.
func (s Cases) Count(i record.Member, taken []byte) {
	if h := s.h(); taken[i>>3]>>(i&7)&1 == 1 && !s.Place(i).Ejected() {
		w := uint32(s.Doubt(i))
		h.SetDoubts(w, h.Doubts(w)+1)
	}
}

// Prepare prepares a draw for which all results are counted: active are the members that may
// verify, whose order it changes.
func (s Cases) Prepare(seed wire.Hash, active []record.Member) {
	first := uint32(len(active)) // how much of the line is looked at
	if !s.Layout.Speeds {
		first = min(first, s.Layout.ChecksMax+1)
	}
	for p, i := range committee.Seat(seed, committee.Verifiers, active, first) {
		s.Place(record.Member(p)).SetVerifier(uint16(i))
	}
	for k, v := range prng.New(seed, "checks").State() {
		s.h().SetStream(uint32(k), v)
	}
}

// Begin readies a prepared draw in which this percentage of the results is checked.
func (d *Draw) Begin(percent uint8) { d.limits = d.Chances(uint64(percent)) }

// Result draws whether a share of the round is checked, if its author's result was accepted. n is
// the number of members that may verify, at least 2. Result reports whether it drew a check, and
// how many places of members and checks it looked at. If these are most, and it has not found what
// it seeks, it is not done, and to be called again.
func (d *Draw) Result(i record.Member, from, count, n, most uint32) (drew bool, looked uint32, done bool) {
	h := d.h()
	if d.Place(i).Ejected() {
		return false, 0, true
	}
	choice, stream := d.choice()
	if choice>>32 < d.limits[d.Doubt(i)] {
		k := h.CheckPlace()
		for ; k < 2*d.Layout.ChecksMax && !d.vacant(k); k++ {
			if looked == most {
				h.SetCheckPlace(k)
				return false, looked, false
			}
			looked++
		}
		h.SetCheckPlace(k)
		if drew = k < 2*d.Layout.ChecksMax; drew {
			found := uint32(0)
			if found, done = d.draw(k, i, from, count, n, most-looked); !done {
				return false, most, false
			}
			looked += found
		}
	}
	for k, v := range stream {
		h.SetStream(uint32(k), v)
	}
	return drew, looked, true
}

// draw puts a check of a share of member i into place k, and returns how many members it looked at.
// It does nothing and returns false if these were to be more than most.
func (d *Draw) draw(k uint32, i record.Member, from, count, n, most uint32) (looked uint32, done bool) {
	h := d.h()
	drawn := h.Drawn()
	at, next := drawn%n, (drawn+1)%n
	if looked, done = d.able(at, n, i, most); !done {
		return looked, false
	}
	h.SetDrawn(drawn + 1)
	if d.verifier(at) == i {
		d.swap(at, next) // no member checks itself
	}
	Check{
		Round: d.Round.Number(), Epoch: d.Round.Epoch(), Step: d.Round.Step(), Member: i, Verifier: d.verifier(at), Sequences: count,
		Share: batch.Hash(batch.Cut(d.Spans, from, count)), Params: d.Params, DeadlineMs: d.DeadlineMs,
	}.Put(d.Check(k % d.Layout.ChecksMax))
	h.SetChecksDrawn(h.ChecksDrawn() + 1)
	return looked, true
}

// End removes what a draw has noted.
func (s Cases) End() {
	s.h().SetDrawn(0)
	s.h().SetCheckPlace(0)
	for k := range uint32(4) {
		s.h().SetStream(k, 0)
	}
	for w := range uint32(DoubtMax + 1) {
		s.h().SetDoubts(w, 0)
	}
}

// choice returns the next choice of the draw, and the stream behind it.
func (d *Draw) choice() (uint64, [4]uint64) {
	var state [4]uint64
	for k := range state {
		state[k] = d.h().Stream(uint32(k))
	}
	src := prng.Resume(state)
	v := src.Uint64()
	return v, src.State()
}

// verifier returns the member at a position of the line of verifiers.
func (s Cases) verifier(at uint32) record.Member {
	return record.Member(s.Place(record.Member(at)).Verifier())
}

func (s Cases) swap(a, b uint32) {
	v, w := s.Place(record.Member(a)), s.Place(record.Member(b))
	i, j := v.Verifier(), w.Verifier()
	v.SetVerifier(j)
	w.SetVerifier(i)
}

// staleRounds is how many rounds after its result's a check keeps its place if no other is free.
// It is drawn after two, and a verifier needs one or two. A gang whose verdicts come at the last
// moment would else stop all checks.
const staleRounds = 10

// vacant reports whether a check may be put into place k: first all that are free come, and then,
// counted from ChecksMax, those of stale checks.
func (s Cases) vacant(k uint32) bool {
	c := s.Check(k % s.Layout.ChecksMax)
	return c.Round() == 0 || k >= s.Layout.ChecksMax && !c.Disputed() && c.Round()+staleRounds < s.h().Round()
}

// able moves the verifier of member i's result to position at of the line of n, from there or
// behind. With SpeedShares that is the first member that can compute such a share in about the time
// that i has for it, or else the fastest one. With EqualShares the line stays as it is. able
// returns how many members it looked at. It does nothing and returns false if these were to be more
// than most.
func (d *Draw) able(at, n uint32, i record.Member, most uint32) (looked uint32, done bool) {
	if !d.Layout.Speeds {
		return 0, true
	}
	shares := d.Round[d.Layout.Shares:] // a member that is not active in the round has speed 0
	speed := func(v record.Member) uint32 { return record.Share(shares[record.ShareBytes*uint64(v):]).Speed() }
	best, fastest, own := at, speed(d.verifier(at)), speed(i)
	none := d.verifier(at) == i
	for k := at; k < n; k++ {
		if looked == most {
			return looked, false
		}
		v := d.verifier(k)
		looked++
		if v == i {
			continue
		}
		speed := speed(v)
		if Nearly(speed, own) {
			best = k
			break
		}
		if none || speed > fastest {
			best, fastest, none = k, speed, false
		}
	}
	d.swap(at, best)
	return looked, true
}

// Chances returns, for each doubt, the bound out of 2^32 below which a draw selects a member. The
// chances are in proportion to the doubts and add up to percent of the n results, rounded down:
// each is w*B/S, where B is percent*n/100 and S is the sum of the doubts. A member whose chance
// would be above one is checked for certain, and the rest is divided among the others in the same
// way. Prepare has counted the results.
func (s Cases) Chances(percent uint64) [DoubtMax + 1]uint64 {
	var count, limits [DoubtMax + 1]uint64
	n, sum := uint64(0), uint64(0)
	for w := range count {
		count[w] = uint64(s.h().Doubts(uint32(w)))
		sum += uint64(w) * count[w]
		n += count[w]
	}
	budget := percent * n // unit: 1/100 of a check
	for w := uint64(DoubtMax); w >= DoubtMin; w-- {
		switch {
		case count[w] == 0:
		case budget*w >= 100*sum:
			limits[w] = 1 << 32
			budget -= 100 * count[w]
			sum -= w * count[w]
		default:
			limits[w] = budget * w << 32 / (100 * sum) // below 2^63: budget*w < 100*sum <= 100 * 16 * 10,000
		}
	}
	return limits
}
