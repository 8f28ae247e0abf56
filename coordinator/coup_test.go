package coordinator

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/coordinator/score"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// TestValidatorCoup: a newcomer with as much money as all validators together offers more for each of their seats in the last window
// of a period, after they have shown their scores. They decide it all the same, and the one after it, in which they still sit; and
// the newcomer's money stays where it is.
func TestValidatorCoup(t *testing.T) {
	const validators, stake = 8, 1000
	c := testConfig()
	c.Validators, c.ScoreWindows, c.Emission, c.Overlap, c.TotalSteps, c.MissedMax = validators, 4, 10_000, 0, 1000, 9
	w := newWorld(t, Limits{Members: 4, Witnesses: 4, Validators: validators}, c, "coup")
	p := &player{w: w, src: prng.New(wire.Sum("test/coup"), "coup")}
	for i := range 4 {
		p.must(w.apply(testKey(fmt.Sprint("player", i)), Join{}))
	}
	for k := range validators - 1 {
		p.must(w.applyWith(testKey(fmt.Sprint("validator", k)), stake, RegisterValidator{}))
	}
	p.must(w.applyWith(testKey("player0"), 1<<40, Fund{}))
	for range 4 {
		p.honest()
	}
	said := map[key.Public]RevealScores{}
	offered := uint32(0)
	for offered == 0 || w.s.book().Settled() < offered {
		period, stage := w.s.Scoring()
		for _, v := range w.s.Validators() {
			if !w.s.MayScore(v.Key, period) {
				continue
			}
			switch stage {
			case score.StageCommit:
				said[v.Key] = p.opinions(period, func(of key.Public) int16 {
					if v.Key != testKey("A") {
						return truth(of)
					}
					return -truth(of)
				})
				_ = w.apply(v.Key, CommitScores{Period: period, Hash: ScoresHash(w.s.ID(), v.Key, said[v.Key])})
			case score.StageReveal:
				_ = w.apply(v.Key, said[v.Key])
			}
		}
		switch last := w.s.Window()%4 == 0; {
		case period == 2 && stage == score.StageCommit:
			_ = w.applyWith(testKey("A"), stake+100, RegisterValidator{}) // the last free seat
		case period == 4 && last && offered == 0:
			offered = period
			for k := range validators - 1 {
				p.must(w.applyWith(testKey(fmt.Sprint("B", k)), stake+50, RegisterValidator{}))
			}
			for k := range validators - 1 {
				if err := w.apply(testKey(fmt.Sprint("B", k)), RetireValidator{}); err == nil {
					t.Error("what was offered for a seat is taken back")
				}
			}
		}
		w.now += 1000
		w.window()
	}
	list, _ := w.s.LastScores()
	if len(list.Members) != 4 || len(list.Validators) != validators {
		t.Fatalf("%d members and %d validators in the period of the coup", len(list.Members), len(list.Validators))
	}
	for _, m := range list.Members {
		if m.Score != truth(w.s.Key(m.Member)) {
			t.Errorf("member %d has score %d, the honest said %d", m.Member, m.Score, truth(w.s.Key(m.Member)))
		}
	}
	for k := range validators - 1 {
		if !w.s.MayScore(testKey(fmt.Sprint("validator", k)), offered+1) {
			t.Errorf("validator %d has no say of the period in which it was outbid", k)
		}
	}
}
