package tui

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/view"
)

// scored is a run with validators, in its fourth window.
func scored(t *testing.T) view.Run {
	t.Helper()
	w := New(Options{})
	s := &runlog.Standing{Height: 31, TimeMs: 1000, Head: runlog.Head{Name: "r", ID: "x", Phase: "RoundTrain", Steps: 100, Step: 4, Round: 4, Points: 40, Present: 2}}
	for i, m := range []coordinator.MemberState{
		{Key: key.Public{0xa1}, Score: score.One, Earned: 900, Unvested: 900}, {Key: key.Public{0xb2}, Score: -score.One / 4},
	} {
		m.Status, m.Points, m.Scored = coordinator.StatusActive, 20, true
		s.Members = append(s.Members, runlog.Member{Index: coordinator.Member(i), MemberState: m})
	}
	s.Windows = &runlog.Windows{Whole: true, SeatsTold: true,
		WindowsHead: runlog.WindowsHead{Buckets: true, WindowBlocks: 20, DeadlineHeight: 43, Window: 4, ScoreWindows: 2, Current: 2, Scoring: 1, Stage: score.StageReveal, Emission: 1000, Given: 950},
		Validators:  []score.Validator{{Seat: 0, Key: key.Public{0xc3}, Stake: 5000, Trust: 70, Earned: 50}, {Seat: 1, Key: key.Public{0xd4}, Stake: 100, Trust: 3}},
		Period: &score.Scores{Period: 1, First: 1, Last: 2, Members: []score.MemberScore{{Member: 0, Scored: true, Score: score.One, Weight: score.WeightOne, Reward: 900}, {Member: 1, Scored: true, Penalty: 7}},
			Validators: []score.ValidatorScores{{Seat: 0, Key: key.Public{0xc3}, Revealed: true, Agreement: score.AgreementOne}, {Seat: 1, Key: key.Public{0xd4}}}}}
	if err := w.Record(runlog.Record{Standing: s}); err != nil {
		t.Fatal(err)
	}
	return w.Snapshot()
}

func TestScoresAreShown(t *testing.T) {
	run := scored(t)
	for _, size := range [][2]int{{80, 24}, {200, 60}} {
		overview := picture(t, &frame{run: run, width: size[0], height: size[1], tab: tabOverview})
		for _, want := range []string{"window 4 to block 43", "period 2, 2 validators", "950 tokens"} {
			if !strings.Contains(overview, want) {
				t.Errorf("overview at %v lacks %q:\n%s", size, want, overview)
			}
		}
		rewards := picture(t, &frame{run: run, width: size[0], height: size[1], tab: tabRewards})
		for _, want := range []string{"revealing scores of period 1", "period 1, windows 1 to 2: 2 of 2 members scored", "trust 70/255", "+1.00", "-0.25", " 900"} {
			if !strings.Contains(rewards, want) {
				t.Errorf("rewards at %v lack %q:\n%s", size, want, rewards)
			}
		}
		if size[0] == 200 && (!strings.Contains(rewards, "agreed 100 %") || !strings.Contains(rewards, "100.0 %, 900") || !strings.Contains(rewards, " -7 ") || !strings.Contains(rewards, "did not reveal")) {
			t.Errorf("rewards lack what validators did:\n%s", rewards)
		}
	}
	for width := widthMin; width < 200; width += 9 {
		for _, height := range []int{heightMin, 12, 24} {
			for tab := range tabs {
				picture(t, &frame{run: run, width: width, height: height, tab: tab})
			}
		}
	}
}
