package optim_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/wire"
)

// The schedules and values of Psyche's tests (its shared/core/src/definitions.rs), with a warmup
// from 0, without the line that ends its wsd, and without the steps after the end of its cosine.
func TestAgreesWithPsyche(t *testing.T) {
	schedules := map[string]optim.Schedule{
		"constant":        {Kind: optim.Constant, Base: .01, WarmupSteps: 10},
		"no warmup":       {Kind: optim.Constant, Base: .01},
		"linear":          {Kind: optim.Linear, Base: .01, WarmupSteps: 10, Steps: 100, Final: 1e-4},
		"cosine":          {Kind: optim.Cosine, Base: .01, WarmupSteps: 10, Steps: 110},
		"wsd":             {Kind: optim.WSD, Base: .01, WarmupSteps: 10, StableSteps: 60, Steps: 180, Final: .001},
		"wsd of no steps": {Kind: optim.WSD, Base: .01, Final: .001},
		"wsd of a warmup": {Kind: optim.WSD, Base: .01, WarmupSteps: 2, Final: .001},
	}
	for _, v := range []struct {
		schedule string
		step     uint32
		want     float64
	}{
		{"constant", 0, 0}, {"constant", 5, .005}, {"constant", 9, .009}, {"constant", 10, .01}, {"constant", 1 << 31, .01},
		{"no warmup", 0, .01},
		{"linear", 0, 0}, {"linear", 10, .01}, {"linear", 55, .00505}, {"linear", 100, 1e-4}, {"linear", 200, 1e-4},
		{"cosine", 5, .005}, {"cosine", 10, .01}, {"cosine", 60, .005}, {"cosine", 110, 0},
		{"cosine", 111, 0}, {"cosine", 160, 0}, {"cosine", 210, 0}, // Psyche's is .01 again at 210
		{"wsd", 9, .009}, {"wsd", 69, .01}, {"wsd", 125, .0055}, {"wsd", 180, .001}, {"wsd", 9999, .001},
		{"wsd of no steps", 0, .001}, {"wsd of no steps", 7, .001},
		{"wsd of a warmup", 0, 0}, {"wsd of a warmup", 1, .005}, {"wsd of a warmup", 2, .001},
	} {
		s, ok := schedules[v.schedule]
		if !ok {
			t.Fatalf("no schedule %q", v.schedule)
		}
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", v.schedule, err)
		}
		if got := s.LR(v.step); math.Abs(float64(got)-v.want) > 1e-9 {
			t.Errorf("%s: the rate of step %d is %v, want %v", v.schedule, v.step, got, v.want)
		}
	}
}

func TestRateNeverRisesAfterWarmupAndStaysWithinItsEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySchedule(t)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		steps := s.WarmupSteps + s.Steps + s.StableSteps + 3
		step := rapid.Uint32Range(0, steps).Draw(t, "step")
		a, b := s.LR(step), s.LR(step+1)
		if step+1 < s.WarmupSteps && b < a { // at WarmupSteps a schedule of no steps has ended
			t.Fatalf("in the warmup the rate falls from %v to %v", a, b)
		}
		if step >= s.WarmupSteps && b > a {
			t.Fatalf("after the warmup the rate rises from %v to %v", a, b)
		}
		if a > float32(s.Base) || a < 0 {
			t.Fatalf("rate %v is not in [0, %v]", a, float32(s.Base))
		}
		last := float32(s.Final)
		if s.Kind == optim.Constant {
			last = float32(s.Base)
		}
		if got := s.LR(math.MaxUint32); got != last {
			t.Fatalf("the rate ends at %v, want %v", got, last)
		}
	})
}

func anySchedule(t *rapid.T) optim.Schedule {
	steps := rapid.Uint32Range(0, 300)
	share := rapid.Float64Range(0, 1)
	s := optim.Schedule{Kind: rapid.SampledFrom([]optim.Kind{optim.Constant, optim.Linear, optim.Cosine, optim.WSD}).Draw(t, "kind")}
	s.Base = rapid.Float64Range(0, 1).Draw(t, "base")
	s.WarmupSteps = steps.Draw(t, "warmup")
	s.Steps = s.WarmupSteps + steps.Draw(t, "steps")
	s.StableSteps = steps.Draw(t, "stable")
	s.Final = s.Base * share.Draw(t, "final")
	return s
}

// The rates of whole schedules, as a hash: equal on every machine.
func TestRatesHaveTheSameBitsEverywhere(t *testing.T) {
	var b []byte
	for kind := optim.Constant; kind <= optim.WSD; kind++ {
		s := optim.Schedule{Kind: kind, Base: .0123, WarmupSteps: 100, Steps: 4321, Final: .0003, StableSteps: 1000}
		for step := range uint32(5000) {
			b = wire.AppendU32(b, math.Float32bits(s.LR(step)))
		}
	}
	const want = "500ec80c88d7462f63b799a728eb70808158c73ff9b860a7e76d388316d5f2d6"
	if got := wire.SHA256(b).String(); got != want {
		t.Errorf("the rates have hash %s, want %s", got, want)
	}
}

func TestCheckNamesEveryFault(t *testing.T) {
	for _, v := range []struct {
		s    optim.Schedule
		want string
	}{
		{optim.Schedule{Base: math.NaN()}, "base rate is NaN, must be in [0, 1000]"},
		{optim.Schedule{Base: 1001}, "base rate is 1001, must be in [0, 1000]"},
		{optim.Schedule{Kind: optim.Linear, Base: 1, Final: 2, WarmupSteps: 3}, "final rate is 2, must be in [0, 1], at most the base rate\n" +
			"the schedule ends at step 0, before its warmup of 3 steps"},
		{optim.Schedule{Kind: optim.WSD, Base: 1, Final: 2}, "final rate is 2, must be in [0, 1], at most the base rate"},
		{optim.Schedule{Kind: 9}, "unknown schedule kind 9"},
	} {
		if got := fmt.Sprint(v.s.Check()); got != v.want {
			t.Errorf("Check of %+v says\n%s, want\n%s", v.s, got, v.want)
		}
	}
}

func TestKindsAreTextInConfigurations(t *testing.T) {
	for kind := optim.Constant; kind <= optim.WSD; kind++ {
		text, err := kind.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back optim.Kind
		if err := back.UnmarshalText(text); err != nil || back != kind {
			t.Errorf("%v becomes %q and that %v (%v)", kind, text, back, err)
		}
	}
	if text, err := optim.Kind(9).MarshalText(); err == nil {
		t.Errorf("kind 9 becomes %q", text)
	}
	var k optim.Kind
	const want = `unknown schedule "Cosine", want constant, linear, cosine or wsd`
	if err := k.UnmarshalText([]byte("Cosine")); fmt.Sprint(err) != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func ExampleSchedule() {
	s := optim.Schedule{Kind: optim.Cosine, Base: 0.004, WarmupSteps: 10, Steps: 110, Final: 0.0004}
	for _, step := range []uint32{0, 5, 10, 60, 110, 1000} {
		fmt.Println(step, s.LR(step))
	}
	// Output:
	// 0 0
	// 5 0.002
	// 10 0.004
	// 60 0.0022
	// 110 0.0004
	// 1000 0.0004
}
