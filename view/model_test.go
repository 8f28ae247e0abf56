package view

import (
	"fmt"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/runlog"
)

// Samples stay spread along a run, however long it is: the first, the newest, and others between
// them.
func TestSamplesAreKeptAlongTheRun(t *testing.T) {
	f := New("")
	add := func(ev event.Sample) { f.Add(runlog.Record{Time: time.Unix(int64(ev.Step), 0), Event: ev}) }
	const last = 10_000
	for step := coordinator.Step(uint32(10)); step <= last; step += 10 {
		for _, prompt := range []string{"a", "b", "a"} { // the third replaces the first
			add(event.Sample{Step: step, Prompt: prompt, Text: fmt.Sprint(prompt, step)})
		}
	}
	r := f.Run(time.Unix(last, 0))
	if len(r.Samples) != 2*stepsKept || r.Samples[0].Step != 10 || r.Samples[len(r.Samples)-1].Step != last {
		t.Fatalf("%d samples, of steps %d to %d", len(r.Samples), r.Samples[0].Step, r.Samples[len(r.Samples)-1].Step)
	}
	for i := 2; i < len(r.Samples); i += 2 {
		if a, b := r.Samples[i], r.Samples[i+1]; a.Step != b.Step || a.Text != fmt.Sprint("a", a.Step) || b.Text != fmt.Sprint("b", b.Step) {
			t.Errorf("samples %+v and %+v", a, b)
		}
		if gap := r.Samples[i].Step - r.Samples[i-2].Step; gap > 4*last/stepsKept {
			t.Errorf("nothing is kept of %d steps before step %d", gap, r.Samples[i].Step)
		}
	}
	for i := range 2 * SamplesMax {
		add(event.Sample{Step: last, Prompt: fmt.Sprint("another ", i)})
	}
	if n := len(f.samples) - 2*(stepsKept-1); n != SamplesMax {
		t.Errorf("%d samples of a step", n)
	}
}

func TestTasksHaveTheirCurves(t *testing.T) {
	f := New("")
	for step := range uint32(3) {
		for i := range 2 * tasksKept {
			f.Add(runlog.Record{Event: event.Scored{Step: coordinator.Step(step) + 1, Task: fmt.Sprintf("t%02d", i), Items: 7, Acc: float64(step) / 4, AccNorm: 0.5}})
		}
	}
	r := f.Run(time.Unix(9, 0))
	if len(r.Tasks) != tasksKept {
		t.Fatalf("%d tasks", len(r.Tasks))
	}
	if x := r.Tasks[3]; x.Name != "t03" || x.Items != 7 || len(x.Acc) != 3 || x.Acc[2].Mean != 0.5 || x.Norm[0].Mean != 0.5 {
		t.Errorf("task %+v", x)
	}
}
