package view

import (
	"slices"
	"strings"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
)

// task is the accuracies on a task as they come.
type task struct {
	name      string
	items     int
	acc, norm curve
}

// scored takes the accuracies of the model on a task.
func (f *Fold) scored(ev event.Scored) {
	i, found := slices.BinarySearchFunc(f.tasks, ev.Task, func(t *task, name string) int { return strings.Compare(t.name, name) })
	if !found {
		if ev.Task == "" || len(f.tasks) == tasksKept {
			return
		}
		f.tasks = slices.Insert(f.tasks, i, &task{name: ev.Task})
	}
	t := f.tasks[i]
	t.items = ev.Items
	t.acc.add(ev.Step, f.run.Tokens, ev.Acc)
	t.norm.add(ev.Step, f.run.Tokens, ev.AccNorm)
}

// taskCurves returns the tasks as of now.
func (f *Fold) taskCurves() []Task {
	list := make([]Task, len(f.tasks))
	for i, t := range f.tasks {
		list[i] = Task{Name: t.name, Items: t.items, Acc: t.acc.copy(), Norm: t.norm.copy()}
	}
	return list
}

// sample takes a text that the model wrote. When there are those of too many steps, the step goes
// whose neighbours are nearest to each other, so that those that stay are spread along the run; the
// first and the newest stay.
func (f *Fold) sample(s Sample) {
	at := len(f.samples)
	for at > 0 && f.samples[at-1].Step > s.Step {
		at--
	}
	same := 0
	for i := at - 1; i >= 0 && f.samples[i].Step == s.Step; i-- {
		same++
		if o := &f.samples[i]; o.Prompt == s.Prompt && o.Who == s.Who {
			*o = s // a participant that was started again
			return
		}
	}
	if same == SamplesMax {
		return
	}
	f.samples = slices.Insert(f.samples, at, s)
	var steps []coordinator.Step
	for _, x := range f.samples {
		if n := len(steps); n == 0 || steps[n-1] != x.Step {
			steps = append(steps, x.Step)
		}
	}
	if len(steps) <= stepsKept {
		return
	}
	gone := 1
	for i := 2; i+1 < len(steps); i++ {
		if steps[i+1]-steps[i-1] < steps[gone+1]-steps[gone-1] {
			gone = i
		}
	}
	f.samples = slices.DeleteFunc(f.samples, func(x Sample) bool { return x.Step == steps[gone] })
}
