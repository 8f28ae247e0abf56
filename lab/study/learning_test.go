package study

import (
	"cmp"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/tests/campaign"
	_ "github.com/entrain-network/entrain/tests/heap"
)

// Each method learns something with each number of members, the bytes are those of the codecs,
// and what a file keeps is not trained again.
func TestMethodsAreCompared(t *testing.T) {
	campaign.Only(t)
	rows := []LearningRow{
		{Method: MethodAdamW, Members: 1, Rate: 1e-3, Fixed: true}, {Method: MethodAdamW, Members: 2, Rate: 1e-3, Fixed: true},
		{Method: MethodDistro, Members: 2, Chunk: 64, TopK: 32, Decay: .9, Rate: 2e-3, Fixed: true},
		{Method: MethodSparseLoCo, Members: 4, Inner: 5, Chunk: 4096, TopK: 64, Decay: .95, Outer: 1, Rate: 4e-3, Fixed: true},
	}
	o := LearningOptions{Text: plainText(t), Steps: 40, Batch: 4, HeldOut: 8, Rows: rows, Results: filepath.Join(t.TempDir(), "kept.jsonl")}
	trained := 0
	o.Progress = func(what string) {
		if !strings.Contains(what, "loss") {
			trained++
		}
	}
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
	if math.Abs(two.last()-one.last()) > 1e-3 || two.Bytes != codec.HeaderLen+4*all.Params {
		t.Errorf("whole gradients of two members end at %v, and of one at %v; %d bytes", two.last(), one.last(), two.Bytes)
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

// A run that was interrupted continues from the state that is kept, to the same losses.
func TestInterruptedRunsContinue(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model for some steps")
	}
	for _, row := range []LearningRow{
		{Method: MethodAdamW, Members: 2, Rate: 1e-3, Fixed: true},
		{Method: MethodDistro, Members: 2, Chunk: 8, TopK: 2, Decay: .9, Rate: 2e-3, Fixed: true},
		{Method: MethodSparseLoCo, Members: 2, Inner: 2, Chunk: 4096, TopK: 64, Decay: .95, Outer: 1, Rate: 4e-3, Fixed: true},
	} {
		o := LearningOptions{Text: plainText(t), Steps: 32, Batch: 4, HeldOut: 8, Rows: []LearningRow{row}}
		want, err := MeasureLearning(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		o.Results, o.every = filepath.Join(t.TempDir(), "kept.jsonl"), 1
		ctx, kill := context.WithCancel(t.Context())
		o.Progress = func(what string) {
			if strings.Contains(what, " 43.8 %, loss") {
				kill()
			}
		}
		if _, err := MeasureLearning(ctx, o); !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: interrupted: %v", row.Method, err)
		}
		var said []string
		o.Progress = func(what string) { said = append(said, what) }
		part := o
		part.Partial = true
		if got, err := MeasureLearning(t.Context(), part); err != nil || !slices.Equal(got.Runs[0].Losses, want.Runs[0].Losses[:3]) || len(said) > 0 {
			t.Errorf("%s: of the interrupted run: %+v, %v; said %q", row.Method, got, err, said)
		}
		got, err := MeasureLearning(t.Context(), o)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", row.Method, got, err, want)
		}
		if len(said) < 2 || !strings.Contains(said[1], " 43.8 %, loss") && !strings.Contains(said[1], " 50.0 %, loss") {
			t.Errorf("%s: it did not continue: %q", row.Method, said)
		}
		if parts, err := filepath.Glob(o.Results + ".*"); len(parts) > 0 || err != nil {
			t.Errorf("%s: left are %q, %v", row.Method, parts, err)
		}
	}
}

// A damaged state costs what was trained, no more; of a run that has not begun there is nothing.
func TestDamagedStatesBeginAgain(t *testing.T) {
	row := LearningRow{Method: MethodAdamW, Members: 1, Rate: 1e-3, Fixed: true}
	o := LearningOptions{Text: plainText(t), Steps: 8, Batch: 2, HeldOut: 2, Rows: []LearningRow{row}, Results: filepath.Join(t.TempDir(), "kept.jsonl")}
	part := o
	part.Partial = true
	if _, err := MeasureLearning(t.Context(), part); !errors.Is(err, errNotBegun) {
		t.Errorf("before the beginning: %v", err)
	}
	ctx, kill := context.WithCancel(t.Context())
	o.Progress = func(what string) {
		if strings.Contains(what, " 25.0 %, loss") {
			kill()
		}
	}
	if _, err := MeasureLearning(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	parts, err := filepath.Glob(o.Results + ".*")
	if err != nil || len(parts) != 1 {
		t.Fatalf("%q, %v", parts, err)
	}
	b, err := os.ReadFile(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(parts[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	var said []string
	o.Progress = func(what string) { said = append(said, what) }
	got, err := MeasureLearning(t.Context(), o)
	if err != nil || len(said) < 2 || !strings.Contains(said[1], "begins again") || !strings.Contains(said[1], parts[0]) {
		t.Fatalf("%v, said %q", err, said)
	}
	o.Results = ""
	if want, err := MeasureLearning(t.Context(), o); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
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
		{LearningRow{Method: "lion", Members: 2, Rate: 1e-3}, "lion"},
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
	if o.Rows[0].Method != MethodAdamW || rows[0].Method != MethodAdamW || len(o.Rows) != 9 {
		t.Errorf("%d rows begin with %+v and %+v", len(o.Rows), o.Rows[0], rows[0])
	}
	for _, row := range rows {
		row.Steps = cmp.Or(row.Steps, o.Steps)
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
