package coordinator

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/prng"
)

// drawChecks draws who is checked of the round of that number, which has become final, by the seed of the round that has just
// opened: when the results were made nobody knew it. Nothing is drawn without agreed parameters to start from, or with
// nobody else to check.
func (s State) drawChecks(env Env, number uint32) {
	percent := s.h().VerificationPercent()
	a, ok := s.At(number)
	if percent == 0 || !ok || !a.Final() {
		return
	}
	params, agreed := a.Agreed()
	members := s.activeMembers()
	n := uint32(len(members))
	if !agreed || n < 2 {
		return
	}
	seed := s.slot(s.Round()).Seed()
	line := make([]uint32, n) // verifiers in their order
	for rank, p := range committee.Positions(seed, committee.Verifiers, n) {
		line[p] = members[rank]
	}
	limits := s.chances(a, uint64(percent))
	src := prng.New(seed, "checks")
	k, drawn := uint32(0), uint32(0)
	for _, d := range a.deal() {
		i := d.member
		if !s.checkable(a, i) || src.Uint64()>>32 >= limits[s.cases().Doubt(i)] {
			continue
		}
		for k < s.l.ChecksMax && s.buffer().Check(k).Round() != 0 {
			k++
		}
		if k == s.l.ChecksMax {
			break
		}
		at, next := drawn%n, (drawn+1)%n
		a.able(line[at:], i)
		if line[at] == i {
			line[at], line[next] = line[next], line[at] // nobody checks itself
		}
		Check{
			Round: number, Epoch: a.Epoch(), Step: a.Step(), Member: i, Verifier: line[at], Sequences: d.count,
			Share: batch.Hash(d.spans), Params: params, DeadlineMs: env.NowMs + s.h().VerifyMs(),
		}.Put(s.buffer().Check(k))
		drawn++
	}
	s.h().SetChecksDrawn(s.h().ChecksDrawn() + drawn)
}

// able brings the one to the front of a line that is to check member i's result of round a, where shares go by speed: the first that
// computes such a share in about the time that i has for it, else the fastest. Where shares are equal it is whoever is first.
func (a Round) able(line []uint32, i uint32) {
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

// checkable tells whether member i has an accepted result in round a that a check could be about.
func (s State) checkable(a Round, i uint32) bool {
	return a.Accepted(i) && s.status(i) != StatusEjected
}

// chances returns, for each doubt, below which number of 2^32 a draw must be. The chances are in proportion to the doubts and
// together percent of the n results, rounded down: each is w*B/S, B being percent*n/100 and S the sum of the doubts. Where
// that is above one the member is checked for certain, and what is left over is divided among the others in the same way.
func (s State) chances(a Round, percent uint64) [dispute.DoubtMax + 1]uint64 {
	var count, limits [dispute.DoubtMax + 1]uint64
	n, sum := uint64(0), uint64(0)
	for i := range s.Count() {
		if s.checkable(a, i) {
			w := s.cases().Doubt(i)
			count[w]++
			sum += uint64(w)
			n++
		}
	}
	budget := percent * n // in hundredths
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

// judgeWitnesses holds against the witnesses of round r, whose parameters are agreed, that they named others. Once may be an
// accident; who does it in three reports in a row is dropped and pays a fee. Who names none vouches for none, and is not
// charged.
func (s State) judgeWitnesses(env Env, r Round) {
	agreed, ok := r.Agreed()
	if !ok {
		return
	}
	for p := range r.electedLen() {
		i := r.electedAt(p)
		if !r.reported(p) || s.status(i) != StatusActive {
			continue
		}
		b := s.place(i)
		params := r.report(p).Params
		switch {
		case params == agreed:
			b.SetAstray(0)
		case params.IsZero():
		case b.Astray()+1 < dispute.AstrayMax:
			b.SetAstray(b.Astray() + 1)
		default:
			b.SetAstray(0)
			s.cases().Convict(env.dispute(nil), dispute.Charge{Member: i, Offence: Contradiction, Round: r.Number(), By: NoMember})
			s.leave(i, StatusDropped, env)
		}
	}
}
