package large

import (
	"errors"
	"math"
	"testing"
)

const weights = 2*128256*8192 + 80*855_654_400 + 8192 // of Llama 3 70B: 70,553,706,496

// plan has a slot that takes 10 s to compute, and a boundary of 32,768,000 bytes of binary32.
func plan(t *testing.T) Plan {
	t.Helper()
	m, err := Model("70b")
	if err != nil {
		t.Fatal(err)
	}
	return Plan{
		Model: m, Machines: 40, Stages: 20, Sequences: 4, Tokens: 1000, Speed: 6 * weights * 1000 / 20 / 10,
		Link: 100e6, Local: 100e9, Disk: 5e9,
	}
}

func ways(t *testing.T, p Plan) map[string]Way {
	t.Helper()
	z, err := Measure(p.Model)
	if err := errors.Join(err, p.Fault()); err != nil {
		t.Fatal(err)
	}
	byName := map[string]Way{}
	for _, w := range p.Ways(z) {
		byName[w.Name] = w
	}
	return byName
}

func TestWaysAgainstHandComputedNumbers(t *testing.T) {
	const (
		norms  = 161 * 8192
		result = ((weights-norms)*89.0/4096 + norms*41.0/64) / 8 // 89 bits for 64 by 64 weights, 41 for 64 of a norm
		update = weights / 8.0
		left   = 80 * 32_768_000.0 // of one sequence at all layers
	)
	fast, slow := plan(t), plan(t)
	slow.Link, slow.Local = 26.2144e6, 5.24288e6 // two boundaries of binary32 take 20 s, and in a group 100 s
	atFast, atSlow := ways(t, fast), ways(t, slow)
	for _, c := range []struct {
		name, what string
		got, want  float64
	}{
		{"groups", "members", float64(atFast["groups"].Members), 2},
		{"groups", "share", float64(atFast["groups"].Share), 2},
		{"groups", "memory", atFast["groups"].Memory, weights}, // 20 bytes a weight, a 20th of them
		{"groups", "moved", atFast["groups"].Moved, result},
		{"groups", "compute", atFast["groups"].Compute, 210}, // (2 + 19) slots
		{"groups", "step", atFast["groups"].Step, 210},
		{"groups", "step, slow", atSlow["groups"].Step, 2100},
		{"groups", "state", atFast["groups"].State, 4 * weights},
		{"groups", "work", atFast["groups"].Work, 400},
		{"groups", "cheats", atFast["groups"].Cheats, 1.0 / 3},
		{"layers from disk", "share", float64(atFast["layers from disk"].Share), 1},
		{"layers from disk", "moved", atFast["layers from disk"].Moved, 39 * result},
		{"layers from disk", "read", atFast["layers from disk"].Read, 12*weights + left},
		{"layers from disk", "written", atFast["layers from disk"].Written, 8*weights + left},
		{"layers from disk", "compute", atFast["layers from disk"].Compute, 200},
		{"layers from disk", "step", atFast["layers from disk"].Step, 39 * result * 8 / 100e6},
		{"pipeline", "moved", atFast["pipeline"].Moved, 4*32_768_000 + result/20},
		{"pipeline", "step", atFast["pipeline"].Step, 210},
		{"pipeline", "step, slow", atSlow["pipeline"].Step, 420},
		{"pipeline", "inputs", atFast["pipeline"].Inputs, 4 * 32_768_000},
		{"pipeline", "state", atFast["pipeline"].State, weights / 5.0},
		{"pipeline", "work", atFast["pipeline"].Work, 20},
		{"pipeline", "cheats", atFast["pipeline"].Cheats, 0.0200691347}, // 1 - e^(ln(2/3)/20)
		{"pipeline", "twice", atFast["pipeline"].Twice, 0.1416656},
		{"pipeline", "away", atFast["pipeline"].Away, 0.1820931},
		{"groups", "away", atFast["groups"].Away, 0.1820931},
		{"layers from disk", "away", atFast["layers from disk"].Away, 0.01},
		{"pipeline, 8 bits", "inputs", atFast["pipeline, 8 bits"].Inputs, 33_792_000},
		{"pipeline, 8 bits", "step, slow", atSlow["pipeline, 8 bits"].Step, 210},
		{"pipeline, subspace", "inputs", atFast["pipeline, subspace"].Inputs, 1_310_720},
		{"sharded optimizer", "moved", atFast["sharded optimizer"].Moved, 846_644_477_952},
		{"layers from owners", "moved", atFast["layers from owners"].Moved, 564_429_651_968 + result},
	} {
		if math.Abs(c.got-c.want) > 1e-6*c.want {
			t.Errorf("%s: %s is %v, want %v", c.name, c.what, c.got, c.want)
		}
	}
	many := plan(t)
	many.Machines = 1020
	if got := ways(t, many)["groups"].Moved; math.Abs(got-update) > 1e-4*update {
		t.Errorf("a follower of 51 groups receives %v bytes, want %v", got, update)
	}
}

func TestColludersAmongThoseThatHoldAPart(t *testing.T) {
	for _, c := range []struct {
		members, parts int
		want           float64
	}{
		{30, 5, 5 * (126.0*21 + 84) / 593_775}, // at least 5 of 6 drawn from 30, 9 of which collude
		{40, 20, 1},                            // both of 2, in 20 draws
		{20, 2, 0},                             // 6 are no quorum of 10, which is 7
		{30, 1, 0},                             // nor are 9 of 30
	} {
		if got := captured(c.members, c.parts); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d members in %d parts are captured with probability %v, want %v", c.members, c.parts, got, c.want)
		}
	}
}

func TestPlansThatCannotBeAreRefused(t *testing.T) {
	for what, change := range map[string]func(*Plan){
		"more stages than layers": func(p *Plan) { p.Stages = 81 },
		"one machine a stage":     func(p *Plan) { p.Machines = 39 },
		"no sequence":             func(p *Plan) { p.Sequences = 0 },
		"no link":                 func(p *Plan) { p.Link = 0 },
		"no speed":                func(p *Plan) { p.Speed = 0 },
	} {
		p := plan(t)
		change(&p)
		if p.Fault() == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if _, err := Model("71b"); err == nil {
		t.Error("there is no model 71b")
	}
}
