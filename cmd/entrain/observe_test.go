package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/view"
)

// checkRecords looks at what a participant that was killed and started again has recorded of a run of so many steps: a log without a
// gap in its format that tells of the run to its end, and metrics and events for other tools.
func checkRecords(t *testing.T, state string, steps uint32) {
	t.Helper()
	log, err := runlog.Open(filepath.Join(state, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	fold := view.New("")
	applied := map[uint32]bool{}
	for {
		r, err := log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if ev, ok := r.Event.(event.Applied); ok {
			applied[uint32(ev.Step)] = true
		}
		fold.Add(r)
	}
	run := fold.Run(time.Now())
	if run.Phase != "Finished" || uint32(run.Step) != steps || len(run.Loss) == 0 || run.Own == nil || run.Own.Points == 0 || log.Torn() {
		t.Errorf("the log of %s ends in %s at step %d with %d losses, own %+v", state, run.Phase, run.Step, len(run.Loss), run.Own)
	}
	b, err := os.ReadFile(filepath.Join(state, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	measured := map[uint32]bool{}
	for line := range strings.Lines(string(b)) {
		var m struct {
			Step uint32   `json:"step"`
			Loss *float64 `json:"train/loss"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Errorf("metrics of %s: %q: %v", state, line, err)
		}
		if m.Loss != nil {
			measured[m.Step] = true
		}
	}
	if len(applied) < int(steps)/2 || len(measured) < int(steps)/2 || !measured[steps] {
		t.Errorf("%s: %d steps applied and %d measured, of %d", state, len(applied), len(measured), steps)
	}
	events, err := filepath.Glob(filepath.Join(state, "tensorboard", "*tfevents*"))
	if err != nil || len(events) < 2 {
		t.Errorf("%s: %d event files after a restart: %v", state, len(events), err)
	}
}
