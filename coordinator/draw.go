package coordinator

import (
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"
)

// prepareChecks counts the accepted results of round a, and then prepares the draw.
func (s State) prepareChecks(a RoundState, w *record.Meter) bool {
	n, taken := uint32(s.Count()), a.accepted()
	if !s.buffer().Each(w, n, countUnits, func(i uint32) { s.cases().Count(Member(i), taken) }) || !w.Takes(prepareUnits*uint64(n)) {
		return false
	}
	s.cases().Prepare(s.slot(s.Round()).Seed(), s.activeMembers())
	return true
}

// drawChecks draws the checks of round a, whose results and parameters have become final, with the
// seed of the round that has just opened, which was unknown when the results were made. It draws
// nothing of ejected members, and nothing at all if there is no other member to check.
func (s State) drawChecks(env Env, a RoundState, w *record.Meter) bool {
	params, _ := a.Agreed()
	d := dispute.Draw{
		Cases: s.cases(), Round: a.b, Spans: a.Spans(), Params: params, DeadlineMs: env.NowMs + s.h().VerifyMs(),
	}
	d.Begin(s.h().VerificationPercent())
	list, taken := a.shares(), a.accepted()
	p, n, verifiers := s.h().Cursor(), a.ExpectedCount(), s.slot(s.Round()).ActiveCount()
	for first := !w.Started; p < n && verifiers > 1 && w.Takes(drawUnits); p, first = p+1, false {
		v := list.at(p, s.lineAt(p))
		if !bit(taken, v.member) {
			continue
		}
		most := uint32(min(w.Left/lookUnits, 1<<31))
		if first {
			most = 1 << 31
		}
		drew, looked, done := d.Result(v.member, v.from, v.count, verifiers, most)
		if w.Spends(lookUnits * uint64(looked)); !done {
			break
		}
		if drew {
			w.Spends(checkUnits)
		}
	}
	s.h().SetCursor(p)
	return p >= n || verifiers < 2
}
