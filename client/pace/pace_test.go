package pace

import "testing"

// A step that takes more of a round than leaves time to send its result counts as a slower one.
func TestStepsLeaveRoomForTheirResults(t *testing.T) {
	var p Pace
	for _, c := range []struct {
		ms       uint64
		finished bool
		want     uint32
	}{
		{1000, true, 10_000}, {3000, true, 3333}, {4000, true, 1875}, {1500, false, 3333}, {4000, false, 468}, {0, true, 10_000_000}, {1 << 40, true, 1},
	} {
		p = Pace{}
		p.Begin(100, 10_000)
		p.End(100+c.ms, 4000, c.finished)
		if got := p.steps[0]; got != c.want {
			t.Errorf("10000 tokens in %d ms, finished %v: %d, want %d", c.ms, c.finished, got, c.want)
		}
		if p.End(100+c.ms, 4000, c.finished); len(p.steps) != 1 {
			t.Error("a step counts twice")
		}
	}
	if s, known := p.Speed(); known {
		t.Errorf("one step is taken for a speed, %d", s)
	}
	p.steps = []uint32{7, 5, 1, 9}
	if s, known := p.Speed(); s != 5 || !known {
		t.Errorf("of %d the lower median is %d", p.steps, s)
	}
	for range 2 * kept {
		p.End(0, 4000, true)
		p.Begin(0, 1)
	}
	if len(p.steps) != kept {
		t.Errorf("%d steps are kept", len(p.steps))
	}
	if Differ(100, 125) || !Differ(100, 126) || !Differ(126, 100) {
		t.Error("not a quarter")
	}
}
