package coordinator

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/prng"
)

// drawChecks draws the checks of round a, whose results and parameters have become final. It uses
// the seed of the round that has just opened, which was unknown when the results were made. It
// draws nothing of ejected members, and nothing at all if there is no other member to check.
func (s State) drawChecks(env Env, a RoundState, shares []dealt) {
	percent := s.h().VerificationPercent()
	if percent == 0 || !a.Final() {
		return
	}
	params, _ := a.Agreed()
	members := s.activeMembers()
	n := uint32(len(members))
	if n < 2 {
		return
	}
	seed := s.slot(s.Round()).Seed()
	first := n // how much of the line is looked at
	if !s.l.Speeds {
		first = min(n, s.l.ChecksMax+1)
	}
	line := committee.Seat(seed, committee.Verifiers, members, first)
	limits := s.chances(a, uint64(percent))
	src := prng.New(seed, "checks")
	k, drawn, spans, taken := uint32(0), uint32(0), a.Spans(), a.accepted()
	for _, d := range shares {
		i := d.member
		if !bit(taken, i) || s.place(i).Ejected() || src.Uint64()>>32 >= limits[s.cases().Doubt(i)] {
			continue
		}
		for k < 2*s.l.ChecksMax && !s.vacant(k) {
			k++
		}
		if k == 2*s.l.ChecksMax {
			break
		}
		at, next := drawn%n, (drawn+1)%n
		a.able(line[at:], i)
		if line[at] == i {
			line[at], line[next] = line[next], line[at] // no member checks itself
		}
		dispute.Check{
			Round: a.Number(), Epoch: a.Epoch(), Step: a.Step(), Member: i, Verifier: line[at], Sequences: d.count,
			Share: batch.Hash(batch.Cut(spans, d.from, d.count)), Params: params, DeadlineMs: env.NowMs + s.h().VerifyMs(),
		}.Put(s.buffer().Check(k % s.l.ChecksMax))
		drawn++
	}
	s.h().SetChecksDrawn(s.h().ChecksDrawn() + drawn)
}

// staleRounds is how many rounds after its result's a check keeps its place if no other is free.
// It is drawn after two, and a verifier needs one or two. A gang whose verdicts come at the last
// moment would else stop all checks.
const staleRounds = 10

// vacant reports whether a check may be put into place k: first all that are free come, and then,
// counted from ChecksMax, those of stale checks.
func (s State) vacant(k uint32) bool {
	c := s.buffer().Check(k % s.l.ChecksMax)
	return c.Round() == 0 || k >= s.l.ChecksMax && !c.Disputed() && c.Round()+staleRounds < s.Round()
}

// able moves the verifier of member i's result of round a to the front of the line. With
// SpeedShares that is the first member that can compute such a share in about the time that i has
// for it, or else the fastest one. With EqualShares the line stays as it is.
func (a RoundState) able(line []Member, i Member) {
	if !a.s.l.Speeds {
		return
	}
	best := 0
	for k, v := range line {
		if v == i {
			continue
		}
		if dispute.Nearly(a.Speed(v), a.Speed(i)) {
			best = k
			break
		}
		if line[best] == i || a.Speed(v) > a.Speed(line[best]) {
			best = k
		}
	}
	line[0], line[best] = line[best], line[0]
}

// chances returns, for each doubt, the bound out of 2^32 below which a draw selects a member. The
// chances are in proportion to the doubts and add up to percent of the n results, rounded down:
// each is w*B/S, where B is percent*n/100 and S is the sum of the doubts. A member whose chance
// would be above one is checked for certain, and the rest is divided among the others in the same
// way.
func (s State) chances(a RoundState, percent uint64) [dispute.DoubtMax + 1]uint64 {
	var count, limits [dispute.DoubtMax + 1]uint64
	n, sum, taken := uint64(0), uint64(0), a.accepted()
	for i := range s.Count() {
		if bit(taken, i) && !s.place(i).Ejected() {
			w := s.cases().Doubt(i)
			count[w]++
			sum += uint64(w)
			n++
		}
	}
	budget := percent * n // unit: 1/100 of a check
	for w := uint64(dispute.DoubtMax); w >= dispute.DoubtMin; w-- {
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
