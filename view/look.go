package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/validator"
)

// Look returns a run as a state on a chain has it, with what a log does not tell: what each member
// can claim and whether it is immune, and what validators have said of the period being scored.
// NowMs is the ledger's time.
func Look(chain string, s ledger.Snapshot, nowMs uint64) Run {
	standing := runlog.Digest(s)
	standing.Chain = chain
	f := New("")
	f.Add(runlog.Record{Time: time.UnixMilli(int64(s.TimeMs)), Standing: standing})
	r := f.Run(time.UnixMilli(int64(nowMs)))
	st, owed := s.State, ledger.NewClaims(s, nowMs)
	scored := st.Config().Validators > 0
	for i := range r.Members {
		m := &r.Members[i]
		m.Claimable, m.Immune = owed.Of(st.Key(m.Index)), scored && st.Member(m.Index).Status.Present() && st.Immune(m.Index)
	}
	w := r.Windows
	if w == nil {
		return r
	}
	if before, ok := st.At(st.Round() - 1); ok && w.Buckets && before.Trains() {
		if seed, ok := before.SliceSeed(); ok {
			w.SliceSeed = seed.String()
		}
	}
	now, _ := st.Scores(w.Scoring)
	for i, v := range st.Validators() {
		w.Validators[i].Said = "nothing"
		if k := slices.IndexFunc(now.Validators, func(x score.ValidatorScores) bool { return x.Key == v.Key }); k >= 0 {
			w.Validators[i].Said = "committed"
			if now.Validators[k].Revealed {
				w.Validators[i].Said = "revealed"
			}
		}
	}
	return r
}

// FindPeriod returns a scoring period as the chain has it: by its number, or with 0 the one settled
// last, else the running one.
func FindPeriod(s coordinator.State, number uint32) (*Period, error) {
	if s.Config().Validators == 0 {
		return nil, fmt.Errorf("run %q has no validators: its members are paid for points, see entrain status %[1]s", s.Config().Name)
	}
	p, ok := s.LastScores()
	switch {
	case number > 0:
		if p, ok = s.Scores(number); !ok {
			return nil, fmt.Errorf("the chain no longer has period %d, or not yet; the run is in period %d", number, s.Period())
		}
	case !ok:
		if p, ok = s.Scores(s.Period()); !ok {
			return nil, fmt.Errorf("scoring of run %q has not begun: the run is in phase %s", s.Config().Name, s.Phase())
		}
	}
	out := newPeriod(p, func(i coordinator.Member) string { return s.Key(i).String() })
	for i, v := range p.Validators {
		if seat, ok := s.Validator(v.Key); ok && !p.Settled {
			out.Validators[i].Stake, out.Validators[i].Trust = seat.Stake, seat.Trust
		}
	}
	return out, nil
}

// An Explanation is a period as it was for one member: Period holds nothing of the others.
type Explanation struct {
	*Period
	Member  coordinator.Member `json:"member"`
	Key     string             `json:"key"`
	Most    float64            `json:"most_paid"`      // a score above it is paid as this one
	Weights float64            `json:"sum_of_weights"` // score x sequences, of all scores above 0

	Emission         uint64 `json:"emission"`
	ValidatorPercent uint8  `json:"validator_percent"`
	// Seen are the evaluations of one validator whose log is at hand.
	Seen []validator.Scored `json:"seen,omitempty"`
}

// Explain returns a period as it was for one member.
func (p *Period) Explain(s coordinator.State, member coordinator.Member) Explanation {
	own := *p
	e := Explanation{
		Period: &own, Member: member, Key: s.Key(member).String(), Emission: s.Config().Emission, ValidatorPercent: s.Config().ValidatorPercent,
	}
	scores, _ := s.Scores(p.Number)
	e.Most = scoreOf(score.MostPaid(scores.Members))
	for _, m := range p.Members {
		e.Weights += max(0, min(m.Score, e.Most)) * float64(m.Sequences)
	}
	own.Members, own.Validators = slices.Clone(p.Members), slices.Clone(p.Validators)
	own.Members = slices.DeleteFunc(own.Members, func(m MemberScore) bool { return m.Member != member })
	for i := range own.Validators {
		said := &own.Validators[i].Said
		*said = slices.DeleteFunc(slices.Clone(*said), func(x Said) bool { return x.Member != member })
	}
	return e
}
