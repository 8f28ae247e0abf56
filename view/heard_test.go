package view

import (
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/runlog"
)

// A sum of commitments counts as the commitments do, whether it comes before or after the state
// tells of its round.
func TestSumsCountAsWhatTheySum(t *testing.T) {
	for name, early := range map[string]bool{"before": true, "after": false} {
		f := New("")
		state := runlog.Record{Time: time.Unix(10, 0), Standing: &runlog.Standing{Height: 5, TimeMs: 10_000,
			Head: runlog.Head{ID: "x", Phase: "RoundTrain", Round: 4, Step: 3}, Rounds: []runlog.Round{{Number: 4, Step: 3}}}}
		sums := []runlog.Heard{
			{Round: 4, Committed: 3, LossSum: 9, LossMin: 2, LossMax: 4, Bytes: 300},
			{Round: 4, Committed: 1, LossSum: 7, LossMin: 7, LossMax: 7, Bytes: 100, Fetched: 4, Came: 400, Seconds: 2},
		}
		if !early {
			f.Add(state)
		}
		for i := range sums {
			f.Add(runlog.Record{Time: time.Unix(11, 0), Heard: &sums[i]})
		}
		if early {
			f.Add(state)
		}
		r := f.Run(time.Unix(12, 0))
		if len(r.Loss) != 1 || r.Loss[0] != (Bucket{From: 3, To: 3, Min: 2, Max: 7, Mean: 3, Count: 1}) {
			t.Errorf("%s: loss %+v", name, r.Loss)
		}
		if x := r.Rounds[0]; x.Committed != 4 || x.Bytes != 400 || x.Loss != 3 {
			t.Errorf("%s: round %+v", name, x)
		}
		if n := r.Network; n.Fetches != 4 || n.FetchedBytes != 400 || n.Transfers[0].Seconds != 0.5 {
			t.Errorf("%s: network %+v", name, n)
		}
	}
}

// Members state their losses, which nobody proves: fewer than half of them move the curve no
// further than what the others state.
func TestLiarsDoNotMoveTheLoss(t *testing.T) {
	for _, lie := range []float32{0, 4e6} {
		s := newScript()
		s.open(1000)
		for i, loss := range []float32{3.1, lie, 3} {
			s.event(1100, event.Committed{Round: 1, Member: coordinator.Member(i), Loss: loss})
		}
		open := s.Run(moment(1200)).Loss
		s.settle(0b111)
		s.open(20_000)
		settled := s.Run(moment(20_000)).Loss
		for _, c := range []Curve{open, settled} {
			if v, ok := c.Last(); !ok || v < 2.9 || v > 3.2 {
				t.Errorf("with a loss of %v the curve ends at %v", lie, v)
			}
		}
	}
}
