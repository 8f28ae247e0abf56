package study

import (
	"math"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/llama"
)

func TestArithmeticsAreComparedOnTheSameRuns(t *testing.T) {
	rows := []LearningRow{{Method: MethodAdamW, Members: 1, Rate: 2e-3, Fixed: true}, {Method: MethodDistro, Members: 2, Chunk: 64, TopK: 32, Decay: .9, Rate: 2e-3, Fixed: true}}
	model := llama.Config{Vocab: 256, Hidden: 32, Layers: 1, Heads: 1, KVHeads: 1, HeadDim: 32, FFN: 64, Context: 40, Theta: 10000, Eps: 1e-5}
	o := NumericsOptions{LearningOptions: LearningOptions{Text: plainText(t), Model: model, Steps: 40, Batch: 4, HeldOut: 8, Rows: rows, Progress: func(string) {}}, Seeds: 2}
	all, err := MeasureNumerics(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Rows) != 4 || all.Tokens != 40*4*40 {
		t.Fatalf("%+v", all)
	}
	for i, r := range all.Rows {
		want := "exact"
		if i >= len(rows) {
			want = "exact8"
		}
		if r.Numerics != want || r.Method != rows[i%len(rows)].Method || len(r.Losses) != 2 || len(r.Mean) != learningPoints || r.Spread[7] != math.Abs(r.Losses[0][7]-r.Losses[1][7]) {
			t.Errorf("row %d: %+v", i, r)
		}
		if r.Spread[7] == 0 {
			t.Errorf("row %d: two seeds end at the same loss", i)
		}
		if eight := i >= len(rows); eight == (r.Relative[7] == 0) || math.Abs(r.Relative[7]) > .02 {
			t.Errorf("row %d: the loss is %g of binary32's off", i, r.Relative[7])
		}
	}
}

// A partial comparison is over the seeds that both have.
func TestPartialComparisons(t *testing.T) {
	base := NumericsRow{Losses: [][]float64{{8, 4, 4}, {9}}}
	r := NumericsRow{Losses: [][]float64{{9, 5}}}
	r.compare(base)
	base.compare(base)
	if !slices.Equal(base.Mean, []float64{8.5}) || !slices.Equal(base.Spread, []float64{1}) || !slices.Equal(base.Relative, []float64{0, 0, 0}) {
		t.Errorf("in binary32 %+v", base)
	}
	if !slices.Equal(r.Mean, []float64{9, 5}) || !slices.Equal(r.Relative, []float64{.125, .25}) {
		t.Errorf("in another %+v", r)
	}
}
