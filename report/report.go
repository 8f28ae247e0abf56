// Package report writes a run down as files that need no program to be looked at: for papers, posts and archives.
//
//	index.html        the run on one page, without scripts; it shows the pictures beside it
//	loss.svg, .png    and so on: each curve there is data for, against the tokens trained by then
//	curves.csv        curve, step_from, step_to, tokens, mean, min, max, values
//	members.csv       rank, index, key, status, points, share, results, missed, joined, stake, balance, settled, claimed, doubt, passed,
//	                  score, earned, unripe
//	rounds.csv        the last rounds: number, epoch, step, opened, seconds, batch, active, expected, accepted, agreed, seed, checked,
//	                  verified, convicted, on_chain
//	convictions.csv   number, round, member, key, offence, by, slashed, evidence, first_round, last_round, results, at; of a run that has checks
//	validators.csv    seat, key, payee, stake, balance, earned, trust, since_window; of a run in which validators score
//	scores.csv        period, member, key, validator, score, weight, reward, penalty, sequences; of the period that was settled last
//	run.json          the whole view.Run
//
// Curves are those of package view: downsampled, a bucket's mean with its least and greatest value.
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
	"github.com/entrain-network/entrain/view"
)

// Chart is a picture of a report.
type Chart struct {
	File  string // without its ending: .svg and .png are both there
	Title string
	Axis  string // what is on the vertical axis
	Zero  bool   // the axis begins at 0
	Lines []Line
}

// Line is a curve of a chart.
type Line struct {
	Name  string // as in curves.csv and in a participant's metrics
	Label string
	Curve view.Curve
}

// Charts are the curves of a run that have at least two points, by which a line can be drawn.
func Charts(r view.Run) []Chart {
	all := []Chart{
		{File: "loss", Title: "Loss", Axis: "nats a token", Lines: []Line{{"train/loss", "training, mean of the members heard of", r.Loss}, {"eval/loss", "held-out", r.HeldOut}}},
		{File: "throughput", Title: "Throughput", Axis: "tokens a second of accepted work", Zero: true, Lines: []Line{{"perf/tokens_per_sec", "network", r.Speed}}},
		{File: "learning-rate", Title: "Learning rate", Axis: "learning rate", Zero: true, Lines: []Line{{"train/lr", "learning rate", r.LR}}},
		{File: "grad-norm", Title: "Gradient norm", Axis: "norm before clipping", Zero: true, Lines: []Line{{"train/grad_norm", "shares of one participant", r.GradNorm}}},
	}
	all = append(all, Chart{File: "payloads", Title: "Payloads", Axis: "bytes a round, as far as seen", Zero: true, Lines: []Line{{"net/payload_bytes", "all members", r.Payloads}}})
	for _, t := range r.Tasks {
		all = append(all, Chart{File: "eval-" + fileWord(t.Name), Title: t.Name, Axis: fmt.Sprintf("share of %d items", t.Items), Lines: []Line{
			{"eval/" + t.Name + "/acc", "accuracy", t.Acc}, {"eval/" + t.Name + "/acc_norm", "normalized by length", t.Norm},
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

// fileWord is a name made fit for a file's: a log may have any.
func fileWord(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, name[:min(len(name), 64)])
}

// Write writes the report of a run into a directory, which is made if need be. Files of an earlier report are replaced, each at once. Now
// is the date on the page.
func Write(dir string, r view.Run, now time.Time) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	files := map[string][]byte{"curves.csv": curvesCSV(r), "members.csv": membersCSV(r), "rounds.csv": roundsCSV(r)}
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
		for _, format := range []string{"svg", "png"} {
			if files[c.File+"."+format], err = paint(c, format); err != nil {
				return fmt.Errorf("report: curve %q: %w", c.File, err)
			}
		}
	}
	var page bytes.Buffer
	if err := writePage(&page, r, charts, now); err != nil {
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
