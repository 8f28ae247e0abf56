package coordinator

import "github.com/entrain-network/entrain/coordinator/dispute"

// drawChecks draws the checks of round a, whose results and parameters have become final, with the
// seed of the round that has just opened, which was unknown when the results were made. It draws
// nothing of ejected members, and nothing at all if there is no other member to check.
func (s State) drawChecks(env Env, a RoundState, w *work) bool {
	params, _ := a.Agreed()
	d := dispute.Draw{
		Cases: s.cases(), Round: a.b, Spans: a.Spans(), Params: params, DeadlineMs: env.NowMs + s.h().VerifyMs(),
	}
	d.Begin(s.h().VerificationPercent())
	list, taken := a.shares(), a.accepted()
	p, n, verifiers := s.h().Cursor(), a.ExpectedCount(), s.slot(s.Round()).ActiveCount()
	for ; p < n && verifiers > 1 && w.takes(drawUnits); p++ {
		v := list.at(p, s.lineAt(p))
		if !bit(taken, v.member) {
			continue
		}
		drew, looked := d.Result(v.member, v.from, v.count, verifiers)
		if w.spends(lookUnits * uint64(looked)); drew {
			w.spends(checkUnits)
		}
	}
	s.h().SetCursor(p)
	return p >= n || verifiers < 2
}
