package view

import (
	"math"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/runlog"
)

func TestScoresAreTold(t *testing.T) {
	s := newScript()
	s.open(1000)
	s.now.Windows = &runlog.Windows{Whole: true, SeatsTold: true, WindowsHead: runlog.WindowsHead{Buckets: true, WindowBlocks: 20, DeadlineHeight: 15, Window: 1, ScoreWindows: 2, Current: 1},
		Commits: []runlog.Commits{{Round: 1, Count: 2}}, Validators: []score.Validator{{Seat: 1, Key: public(ann), Stake: 7, Trust: 64}}}
	s.state(1100)
	first := s.Run(moment(1100))
	if w := first.Windows; w == nil || w.DeadlineHeight != 15 || len(w.Validators) != 1 || w.Period != nil || first.Rounds[0].OnChain != 2 {
		t.Fatalf("%+v, rounds %+v", first.Windows, first.Rounds)
	}
	m1 := &s.now.Members[1]
	m1.Score, m1.Scored, m1.Earned, m1.Unvested = score.One/2, true, 90, 90
	s.now.Windows = &runlog.Windows{SeatsTold: true, WindowsHead: runlog.WindowsHead{Buckets: true, Window: 4, ScoreWindows: 2, Current: 2, Scoring: 1, Stage: score.StageReveal, Given: 100},
		Validators: []score.Validator{{Seat: 1, Key: public(ann), Stake: 7, Trust: 65, Earned: 10}},
		Period: &score.Scores{Period: 1, First: 1, Last: 2, Members: []score.MemberScore{{Member: 1, Sequences: 4, Scored: true, Score: score.One / 2, Weight: score.WeightOne, Reward: 90},
			{Member: 2, Penalty: 5}},
			Validators: []score.ValidatorScores{{Seat: 1, Key: public(ann), Revealed: true, Agreement: score.AgreementOne, Reward: 10, Scores: []score.Score{{Member: 1, Value: -score.One}}}}}}
	s.state(1200)
	r := s.Run(moment(1200))
	w, m := r.Windows, r.Members[1]
	if w.Stage != "revealing" || w.Given != 100 || w.Validators[0].Trust != 65 || !m.Scored || math.Abs(m.Score-0.5) > 1e-4 || m.Earned != 90 || r.Members[0].Scored {
		t.Errorf("%+v, member %+v", w, m)
	}
	if p := w.Period; p == nil || p.Members[0].Key != bob || p.Members[0].Weight != 1 || p.Members[1].Penalty != 5 || p.Validators[0].Agreement != 1 || p.Validators[0].Said[0].Score != -1 {
		t.Errorf("%+v", w.Period)
	}
	if text := r.Log[len(r.Log)-1].Text; !strings.Contains(text, "period 1, windows 1 to 2: 1 of 2 members scored, 90 tokens given, 5 taken back") {
		t.Errorf("said %q", text)
	}
	if first.Windows.Validators[0].Trust != 64 {
		t.Error("what was given away has changed")
	}
	// What is not told again stays.
	s.now.Windows = &runlog.Windows{WindowsHead: w4(r)}
	s.state(1300)
	if r = s.Run(moment(1300)); len(r.Windows.Validators) != 1 || r.Windows.Period == nil || r.Members[1].Earned != 90 {
		t.Errorf("%+v", r.Windows)
	}
}

// w4 is a later head.
func w4(r Run) runlog.WindowsHead {
	return runlog.WindowsHead{Buckets: true, Window: r.Windows.Window + 1, ScoreWindows: 2, Current: 3}
}

// Members are ranked by what they earned, or by points where nobody scores; a cheat comes last whatever it gathered.
func TestWhoIsBetter(t *testing.T) {
	scored := Run{Windows: &Windows{WindowsHead: runlog.WindowsHead{ScoreWindows: 2}}}
	for name, c := range map[string]struct {
		run           Run
		better, worse Member
	}{
		"by earnings": {scored, Member{Earned: 2}, Member{Earned: 1, Score: 0.5, Points: 9}},
		"by score":    {scored, Member{Earned: 1, Score: 0.5}, Member{Earned: 1, Points: 9}},
		"by points":   {Run{}, Member{Points: 9}, Member{Earned: 2}},
		"a cheat":     {scored, Member{Status: "dropped"}, Member{Status: "ejected", Earned: 5}},
	} {
		if c.run.Better(c.better, c.worse) >= 0 || c.run.Better(c.worse, c.better) <= 0 || c.run.Better(c.worse, c.worse) != 0 {
			t.Errorf("%s: the wrong one is better", name)
		}
	}
}
