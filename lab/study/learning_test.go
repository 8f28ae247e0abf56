package study

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/codec"
)

// Each method learns something with each number of members, the bytes are those of the codecs,
// and what a file keeps is not trained again.
func TestMethodsAreCompared(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model for some steps")
	}
	rows := []LearningRow{
		{Method: MethodAdamW, Members: 1, Rate: 1e-3, Fixed: true}, {Method: MethodAdamW, Members: 2, Rate: 1},
		{Method: MethodDistro, Members: 2, Chunk: 64, TopK: 32, Decay: .9, Rate: 2e-3, Fixed: true},
		{Method: MethodSparseLoCo, Members: 4, Inner: 5, Chunk: 4096, TopK: 64, Decay: .95, Outer: 1, Rate: 4e-3, Fixed: true},
	}
	o := LearningOptions{Text: plainText(t), Steps: 40, Batch: 4, HeldOut: 8, Rows: rows, Results: filepath.Join(t.TempDir(), "kept.jsonl")}
	trained := 0
	o.Progress = func(string) { trained++ }
	all, err := MeasureLearning(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Runs) != len(rows) || all.Tokens != 40*4*learningSequence || all.HeldOut != 8*learningSequence || trained != len(rows) {
		t.Fatalf("%d runs of %d tokens, loss of %d, %d trained", len(all.Runs), all.Tokens, all.HeldOut, trained)
	}
	for i, r := range all.Runs {
		if len(r.Losses) != learningPoints || !(r.last() < all.Start) || r.Relative != r.last()/all.Runs[0].last() {
			t.Errorf("%+v: losses %v, relative %v; before %v", rows[i], r.Losses, r.Relative, all.Start)
		}
		if want := uint64(r.Rounds * r.Bytes); r.Total != want || math.Abs(r.Bits-8*float64(want)/40/float64(all.Params)) > 1e-9 {
			t.Errorf("%+v: %d bytes in all, want %d; %v bits", rows[i], r.Total, want, r.Bits)
		}
	}
	one, two, sparse := all.Runs[0], all.Runs[1], all.Runs[3]
	if math.Abs(two.last()-one.last()) > 1e-3 || two.Rate != one.Rate || two.Bytes != codec.HeaderLen+4*all.Params {
		t.Errorf("whole gradients of two members end at %v, and of one at %v; at rates %v and %v", two.last(), one.last(), two.Rate, one.Rate)
	}
	if sparse.Rounds != 8 || !(sparse.Bits < .2/5) {
		t.Errorf("sparseloco had %d rounds and uploaded %v bits", sparse.Rounds, sparse.Bits)
	}
	again, err := MeasureLearning(t.Context(), o)
	if err != nil || trained != len(rows) || !reflect.DeepEqual(again, all) {
		t.Errorf("once more: %d trained, %v; %+v", trained, err, again)
	}
	o.Results, o.Rows = "", rows[:1]
	if again, err = MeasureLearning(t.Context(), o); err != nil || !reflect.DeepEqual(again.Runs, all.Runs[:1]) || trained != len(rows)+1 {
		t.Errorf("trained once more, it ends at %+v, %v", again.Runs, err)
	}
}

// Rates at which training breaks are worse than all others, and no error.
func TestDivergedRunsAreWorst(t *testing.T) {
	row := LearningRow{Method: MethodSparseLoCo, Members: 2, Inner: 1, Chunk: 64, TopK: 64, Outer: 16, Rate: 9, Fixed: true}
	o := LearningOptions{Text: plainText(t), Steps: 64, Batch: 2, HeldOut: 2, Rows: []LearningRow{row}, Results: filepath.Join(t.TempDir(), "kept.jsonl")}
	all, err := MeasureLearning(t.Context(), o)
	if err != nil || all.Runs[0].last() != diverged || len(all.Runs[0].Losses) != learningPoints {
		t.Errorf("%+v, %v", all.Runs, err)
	}
}

// The best rate is found from wherever the search starts.
func TestRatesAreSearched(t *testing.T) {
	lossAt := func(rate float64) float64 { return 1 + math.Abs(math.Log2(rate/8)) }
	for _, from := range []float64{1, 8, 64} {
		tried := 0
		got, n, err := bestRate(from, func(rate float64) (float64, error) { tried++; return lossAt(rate), nil })
		if err != nil || got != 8 || n != tried || tried > 6 {
			t.Errorf("from %g: %g after %d, said to be %d; %v", from, got, tried, n, err)
		}
	}
	broken := os.ErrInvalid
	if _, _, err := bestRate(1, func(float64) (float64, error) { return 0, broken }); err != broken {
		t.Errorf("error %v", err)
	}
}

func TestUnequalRunsAreRefused(t *testing.T) {
	text := plainText(t)
	for _, v := range []struct {
		row  LearningRow
		want string
	}{
		{LearningRow{Method: MethodAdamW, Members: 3, Rate: 1e-3}, "3 members do not divide"},
		{LearningRow{Method: MethodAdamW, Members: 0, Rate: 1e-3}, "0 members do not divide"},
		{LearningRow{Method: MethodSparseLoCo, Members: 2, Inner: 3, Chunk: 64, TopK: 8, Outer: 1, Rate: 1e-3}, "not a whole number of rounds of 3"},
		{LearningRow{Method: MethodSparseLoCo, Members: 2, Inner: 8, Chunk: 64, TopK: 8, Outer: 1, Rate: 1e-3}, "rounds of 8 steps each"},
		{LearningRow{Method: MethodDistro, Members: 2, Rate: 1e-3}, "block is 0"},
		{LearningRow{Method: "muon", Members: 2, Rate: 1e-3}, "muon"},
		{LearningRow{Method: MethodAdamW, Members: 2, Rate: -1}, "rate"},
	} {
		_, err := MeasureLearning(t.Context(), LearningOptions{Text: text, Steps: 40, Batch: 4, Rows: []LearningRow{v.row}})
		if err == nil || !strings.Contains(err.Error(), v.want) {
			t.Errorf("%+v: %v, want %q", v.row, err, v.want)
		}
	}
}

// The comparisons of the documentation are of runs that compare, each another.
func TestRowsOfTheDocumentation(t *testing.T) {
	var o LearningOptions
	o.fill()
	rows := append(LearningVariations(), o.Rows...)
	if o.Rows[0].Method != MethodAdamW || rows[0].Method != MethodAdamW || len(o.Rows) != 12 {
		t.Errorf("%d rows begin with %+v and %+v", len(o.Rows), o.Rows[0], rows[0])
	}
	for _, row := range rows {
		row.Steps = orDefault(row.Steps, o.Steps)
		if err := o.check(row); err != nil {
			t.Errorf("%+v: %v", row, err)
		}
	}
	seen := map[LearningRow]bool{}
	for _, row := range LearningVariations() {
		if seen[row] {
			t.Errorf("%+v is there twice", row)
		}
		seen[row] = true
	}
}
