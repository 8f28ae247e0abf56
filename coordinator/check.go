package coordinator

import (
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/prng"
)

// Checks: which accepted results are recomputed, by whom, and what they say.

// A member's doubt is its weight in the draw.
const (
	doubtMin = 1  // the least, so that nobody is ever sure not to be checked
	doubtNew = 8  // a newcomer's; each check passed takes one off
	doubtMax = 16 // after a failed check, or a vote that was wrong
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
		if !s.checkable(a, i) || src.Uint64()>>32 >= limits[s.doubt(i)] {
			continue
		}
		for k < s.l.ChecksMax && s.check(k).Round() != 0 {
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
		}.put(s.check(k))
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
		if nearly(a.Speed(v), a.Speed(i)) {
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

func (s State) doubt(i uint32) uint8 {
	return max(doubtMin, min(s.place(i).Doubt(), doubtMax))
}

// chances returns, for each doubt, below which number of 2^32 a draw must be. The chances are in proportion to the doubts and
// together percent of the n results, rounded down: each is w*B/S, B being percent*n/100 and S the sum of the doubts. Where
// that is above one the member is checked for certain, and what is left over is divided among the others in the same way.
func (s State) chances(a Round, percent uint64) [doubtMax + 1]uint64 {
	var count, limits [doubtMax + 1]uint64
	n, sum := uint64(0), uint64(0)
	for i := range s.Count() {
		if s.checkable(a, i) {
			w := s.doubt(i)
			count[w]++
			sum += uint64(w)
			n++
		}
	}
	budget := percent * n // in hundredths
	for w := uint64(doubtMax); w >= doubtMin; w-- {
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

// checkOf returns the place of the check of a member's result that the sender is to make.
func (s State) checkOf(env Env, round, member uint32) (k uint32, e Error) {
	i, ok := s.Find(env.Sender)
	switch {
	case !ok:
		return 0, ErrNotMember
	case s.status(i) == StatusEjected:
		return 0, ErrEjected
	}
	k, ok = s.findCheck(round, member)
	if !ok {
		return 0, ErrCheck
	}
	c := readCheck(s.check(k))
	switch {
	case c.Verifier != i || c.Disputed:
		return 0, ErrCheck
	case env.NowMs >= c.DeadlineMs:
		return 0, ErrLate
	}
	return k, OK
}

// findCheck returns the place of the check of a member's result of a round, which there is at most one of.
func (s State) findCheck(round, member uint32) (uint32, bool) {
	if round == 0 {
		return 0, false
	}
	for k := range s.l.ChecksMax {
		if b := s.check(k); b.Round() == round && b.Member() == member {
			return k, true
		}
	}
	return 0, false
}

// about tells whether a signed commitment is the checked member's for the checked round.
func (s State) about(c Check, signed Signed) bool {
	v := signed.Commitment
	return v.Run == s.ID() && v.Round == c.Round && v.Member == c.Member && signed.Verify(s.Key(c.Member))
}

// fits tells whether a commitment names the epoch, the share and the parameters that the checked result is to be about.
func (c Check) fits(v Commitment) bool {
	return v.Epoch == c.Epoch && v.Share == c.Share && v.Params == c.Params
}

func (s State) pass(env Env, m Pass) Error {
	k, e := s.checkOf(env, m.Round, m.Member)
	if e != OK {
		return e
	}
	c := readCheck(s.check(k))
	if !s.about(c, m.Commitment) || !c.fits(m.Commitment.Commitment) {
		return ErrCommitment
	}
	clear(s.check(k))
	if WorkHash(s.ID(), c.Round, c.Member, m.Gradient) != m.Commitment.Commitment.Work {
		s.convict(env, charge{member: c.Verifier, offence: FalsePass, round: c.Round, by: NoMember, proof: m})
		return OK
	}
	s.place(c.Verifier).SetSkipped(0)
	s.h().SetChecksPassed(s.h().ChecksPassed() + 1)
	s.payVerifier(c.Verifier, c.Sequences)
	s.clearDoubt(c.Member)
	return OK
}

// clearDoubt rewards member i for a result that was found right.
func (s State) clearDoubt(i uint32) {
	b := s.place(i)
	b.SetDoubt(max(s.doubt(i)-1, doubtMin))
	b.SetStrikes(0)
	b.SetPassed(b.Passed() + 1)
}

func (s State) accuse(env Env, m Accuse) Error {
	k, e := s.checkOf(env, m.Round, m.Member)
	if e != OK {
		return e
	}
	c := readCheck(s.check(k))
	if !s.about(c, m.Commitment) {
		return ErrCommitment
	}
	if env.Referee == nil {
		return ErrReferee
	}
	if !c.fits(m.Commitment.Commitment) {
		// What it signed is wrong on its face: nothing is left to be recomputed.
		clear(s.check(k))
		s.place(c.Verifier).SetSkipped(0)
		s.convict(env, charge{member: c.Member, offence: WrongResult, round: c.Round, by: c.Verifier, proof: m})
		s.payVerifier(c.Verifier, c.Sequences)
		return OK
	}
	d, ok := s.freeDispute()
	if !ok {
		return ErrBusy
	}
	s.place(c.Verifier).SetSkipped(0)
	d.open(env, k)
	m.Commitment.Commitment.Append(d.b.Commitment()[:0])
	d.b.SetTrace(Accuser, m.Trace)
	d.drawTies(env)
	return OK
}

func (s State) unserved(env Env, m Unserved) Error {
	k, e := s.checkOf(env, m.Round, m.Member)
	if e != OK {
		return e
	}
	if s.check(k).Reassigned() {
		return ErrCheck // it was given to one who was served
	}
	d, ok := s.freeDispute()
	if !ok {
		return ErrBusy
	}
	d.open(env, k)
	d.b.SetUnserved(true)
	d.drawTies(env)
	return OK
}

// expireChecks ends the checks whose time is over. Each verifier that was silent is charged with it, once however many checks
// it had, unless there was no place for a dispute.
func (s State) expireChecks(env Env) {
	_, place := s.freeDispute()
	var silent []uint32
	for k := range s.l.ChecksMax {
		b := s.check(k)
		if b.Round() == 0 || b.Disputed() || env.NowMs < b.DeadlineMs() {
			continue
		}
		silent = append(silent, b.Verifier())
		clear(b)
	}
	if !place {
		return
	}
	slices.Sort(silent)
	for _, i := range slices.Compact(silent) {
		if s.status(i).Present() {
			s.skip(i, env)
		}
	}
}
