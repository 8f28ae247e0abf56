package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// resumed is a run that goes on after so many steps and sequences.
func resumed(t *testing.T, step uint32, sequence uint64) Spec {
	t.Helper()
	s := Default(all.Kinds())
	s.Name, s.Steps, s.Model.From = "again", 600, wire.Sum("params").String()
	s.Batch = Batch{Start: 10, End: 110, RampTokens: 100_000 * 128}
	s.Resume = &Resume{Step: step, Sequence: sequence, States: map[string]string{}}
	for i := range 3 {
		s.Resume.States[key.FromSeed([32]byte{byte(i)}).Public().String()] = wire.Sum("state", []byte{byte(i)}).String()
	}
	text, err := s.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(text, all.Kinds())
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if fmt.Sprint(again.Resume) != fmt.Sprint(s.Resume) {
		t.Errorf("read as %+v, was %+v", again.Resume, s.Resume)
	}
	return again
}

func TestAResumedRunIsTheRestOfTheOther(t *testing.T) {
	s := resumed(t, 250, 40_000)
	whole := s
	whole.Resume = nil
	limits, config := s.Coordinator(key.Public{1}, wire.Hash{1}, wire.Hash{1})
	if faults := config.Check(limits); len(faults) > 0 || config.TotalSteps != 350 {
		t.Errorf("%d steps are left; %v", config.TotalSteps, faults)
	}
	if config.BatchStart != 50 || config.BatchEnd != 110 || config.BatchRampTokens != 60_000*128 {
		t.Errorf("the batch grows from %d to %d in %d tokens", config.BatchStart, config.BatchEnd, config.BatchRampTokens)
	}
	rest, err := s.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	all, err := whole.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	for step := coordinator.Step(uint32(1)); step <= config.TotalSteps; step++ {
		if rest.LR(uint32(step)) != all.LR(250+uint32(step)) {
			t.Fatalf("step %d has rate %g, want %g", step, rest.LR(uint32(step)), all.LR(250+uint32(step)))
		}
	}
	states := s.States()
	for i := range 3 {
		if states[key.FromSeed([32]byte{byte(i)}).Public()] != wire.Sum("state", []byte{byte(i)}) {
			t.Errorf("member %d does not go on from its state", i)
		}
	}
	if _, config := resumed(t, 250, 100_000).Coordinator(key.Public{1}, wire.Hash{1}, wire.Hash{1}); config.BatchStart != 110 || config.BatchRampTokens != 0 {
		t.Errorf("after the ramp the batch grows from %d in %d tokens", config.BatchStart, config.BatchRampTokens)
	}
	if len(whole.States()) != 0 || whole.First() != 0 || whole.Before() != 0 {
		t.Error("a run that does not resume goes on from something")
	}
}

func TestWhatCannotBeResumedIsNamed(t *testing.T) {
	for want, bend := range map[string]func(*Spec){
		"model.from is missing": func(s *Spec) { s.Model.From = "" },
		"none is left":          func(s *Spec) { s.Resume.Step = s.Steps },
		"sequence: ":            func(s *Spec) { s.Resume.Sequence = 1 << 62 },
		"is not a key or hash":  func(s *Spec) { s.Resume.States["x"] = "y" },
		"at most 400 are allowed": func(s *Spec) {
			for i := range ResumeStatesMax {
				s.Resume.States[wire.Sum("key", wire.AppendU32(nil, uint32(i))).String()] = wire.Sum("state").String()
			}
		},
	} {
		s := resumed(t, 250, 40_000)
		bend(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// The largest table of states fits into a specification with room for everything else.
func TestStatesFitIntoASpecification(t *testing.T) {
	s := resumed(t, 250, 40_000)
	for i := range ResumeStatesMax - len(s.Resume.States) {
		s.Resume.States[wire.Sum("key", wire.AppendU32(nil, uint32(i))).String()] = wire.Sum("state", wire.AppendU32(nil, uint32(i))).String()
	}
	text, err := s.Append(nil)
	if err != nil || len(text) > 60<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if again, err := Parse(text, all.Kinds()); err != nil || fmt.Sprint(again.States()) != fmt.Sprint(s.States()) {
		t.Errorf("other states are read: %v", err)
	}
}
