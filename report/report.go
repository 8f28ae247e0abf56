// Package report writes a run as files that need no program to be read: for papers, posts and
// archives.
//
//	index.html        the run on one page, without scripts; it shows the pictures beside it
//	README.md         a model card
//	loss.svg          and so on: every curve that has data, against the tokens trained so far
//	curves.csv        every point of these curves
//	members.csv       members, best first
//	rounds.csv        the newest rounds
//	convictions.csv   convictions, if the run has checks
//	validators.csv    validators, if the run has them
//	scores.csv        what validators scored in the period settled last
//	run.json          the whole view.Run
//
// The first line of each CSV file names its columns. Curves are those of package view:
// downsampled, a bucket's mean with its least and greatest value.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// Chart is a picture in a report.
type Chart struct {
	File  string // name of the file, without .svg
	Title string
	Axis  string // label of the vertical axis
	Zero  bool   // the axis begins at 0
	Lines []Line
}

// Line is a curve in a chart.
type Line struct {
	Name  string // as in curves.csv and in a participant's metrics
	Label string
	Curve view.Curve
}

// Charts returns the curves of a run that have at least two points to draw a line through.
func Charts(r view.Run) []Chart {
	all := []Chart{
		{File: "loss", Title: "Loss", Axis: "nats per token", Lines: []Line{
			{"train/loss", "training, median of what members state", r.Loss}, {"eval/loss", "held-out", r.HeldOut}}},
		{File: "throughput", Title: "Throughput", Axis: "accepted tokens per second", Zero: true,
			Lines: []Line{{"perf/tokens_per_sec", "network", r.Speed}}},
		{File: "learning-rate", Title: "Learning rate", Axis: "step size", Zero: true,
			Lines: []Line{{"train/lr", "learning rate", r.LR}}},
		{File: "grad-norm", Title: "Gradient norm", Axis: "norm before clipping", Zero: true,
			Lines: []Line{{"train/grad_norm", "shares of one participant", r.GradNorm}}},
		{File: "payloads", Title: "Payloads", Axis: "bytes per round, as seen by one participant", Zero: true,
			Lines: []Line{{"net/payload_bytes", "all members", r.Payloads}}},
	}
	for _, t := range r.Tasks {
		all = append(all, Chart{File: "eval-" + fileWord(t.Name), Title: t.Name,
			Axis: fmt.Sprintf("share of %d items", t.Items), Lines: []Line{
				{"eval/" + t.Name + "/acc", "accuracy", t.Acc},
				{"eval/" + t.Name + "/acc_norm", "normalized by length", t.Norm},
			}})
	}
	var charts []Chart
	for _, c := range all {
		var lines []Line
		for _, l := range c.Lines {
			if len(l.Curve) > 1 {
				lines = append(lines, l)
			}
		}
		if c.Lines = lines; len(lines) > 0 {
			charts = append(charts, c)
		}
	}
	return charts
}

// fileWord makes a file name of a task's name, which may hold anything.
func fileWord(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, name[:min(len(name), 64)])
}

// Write writes the report of a run into a directory, which it creates if needed. Each file replaces
// that of an earlier report atomically. The page has the date now. The specification may be nil.
func Write(dir string, r view.Run, s *spec.Spec, now time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	files := map[string][]byte{"curves.csv": curvesCSV(r), "members.csv": membersCSV(r), "rounds.csv": roundsCSV(r), "README.md": card(r, s, now)}
	if r.Trust != nil {
		files["convictions.csv"] = convictionsCSV(r)
	}
	if r.Windows != nil && r.Windows.ScoreWindows > 0 {
		files["validators.csv"] = validatorsCSV(r.Windows)
		if r.Windows.Period != nil {
			files["scores.csv"] = scoresCSV(r.Windows.Period)
		}
	}
	whole, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("report: run as JSON: %w", err)
	}
	files["run.json"] = append(whole, '\n')
	charts := Charts(r)
	for _, c := range charts {
		files[c.File+".svg"] = paint(c)
	}
	var page bytes.Buffer
	if err := writePage(&page, r, s, charts, now); err != nil {
		return fmt.Errorf("report: page: %w", err)
	}
	files["index.html"] = page.Bytes()
	for name, b := range files {
		if err := atomicfile.WriteBytes(filepath.Join(dir, name), 0o644, b); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	return nil
}
