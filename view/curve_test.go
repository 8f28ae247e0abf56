package view

import (
	"testing"

	"github.com/entrain-network/entrain/coordinator"
)

func TestCurveKeepsSpikesWhenItIsLong(t *testing.T) {
	var s curve
	for step := range uint32(100_000) {
		v := 1.0
		if step == 77_777 {
			v = 50
		}
		s.add(coordinator.Step(step), uint64(step), v)
	}
	if n := len(s.buckets); n > curveMax || n < curveMax/4 {
		t.Fatalf("%d buckets", n)
	}
	var values uint32
	most := 0.0
	for i, b := range s.buckets {
		values += b.Count
		most = max(most, b.Max)
		if b.From > b.To || i > 0 && s.buckets[i-1].To >= b.From {
			t.Errorf("bucket %d is %+v", i, b)
		}
	}
	if values != 100_000 || most != 50 {
		t.Errorf("%d values, at most %g", values, most)
	}
}
