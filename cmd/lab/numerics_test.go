package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/lab/study"
)

func TestNumericsRefusesWhatCannotBe(t *testing.T) {
	fails(t, []string{"numerics", "--steps", "0"}, "--steps 0")
	fails(t, []string{"numerics", "--seeds", "-1"}, "--seeds -1")
	fails(t, []string{"numerics", "--model", "huge"}, "--model", "huge")
	fails(t, []string{"numerics", "--model", "none.json"}, "--model", "none.json")
	fails(t, []string{"numerics", "--model", "tiny"}, "head_dim", "exact8")
	fails(t, []string{"numerics", "--held-out", "0"}, "--held-out 0")
	fails(t, []string{"numerics", "--partial"}, "which --results")
	fails(t, []string{"numerics", "--rates", "adamw=2"}, "--rates adamw=2")
	fails(t, []string{"numerics", "--rates", "sgd=0.1"}, "--rates", "distro")
}

func TestPartialNumericsOfNothing(t *testing.T) {
	text := writeText(t, strings.Repeat("A line.\n", 4000))
	if out := ok(t, "numerics", "--data", text, "--partial", "--rates", "adamw=0.002", "--results", filepath.Join(t.TempDir(), "kept.jsonl")); !strings.Contains(out, "No run has") {
		t.Errorf("printed %q", out)
	}
}

func TestNumericsTable(t *testing.T) {
	var out strings.Builder
	row := study.NumericsRow{LearningRow: study.LearningRow{Method: study.MethodDistro, Members: 8, Rate: .004}, Numerics: "exact8", Losses: [][]float64{{1.5, 1.25}}, Mean: []float64{1.5, 1.25}, Spread: []float64{.02, .01}, Relative: []float64{0, .002}}
	if err := writeNumerics(&out, study.NumericsComparison{Params: 988544, Tokens: 40960, HeldOut: 1024, Seeds: 3, Rows: []study.NumericsRow{row}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"988,544 parameters, 40,960 tokens, 3 seeds; loss on 1,024 held-out tokens", "method members numerics seeds rate 1/8 1/4 1/2 3/4 all spread to exact", "distro 8 exact8 1 0.004 1.5000 1.2500 0.0100 +0.20 %"} {
		if !containsWords(out.String(), want) {
			t.Errorf("no line begins with %q in\n%s", want, out.String())
		}
	}
}
