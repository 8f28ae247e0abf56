package study

import (
	"testing"

	"github.com/entrain-network/entrain/tests/campaign"
)

// A comparison of a few windows: each rule learns something, the same numbers come again, and the
// bytes are those of the codecs.
func TestSlicesAreCompared(t *testing.T) {
	campaign.Only(t)
	rows := []SliceRow{{Rule: RuleDistro, Decay: .95, Rate: 2e-3}, {Rule: RuleDistro, Overlap: 1, Decay: .95, Rate: 2e-3}}
	for _, rule := range []SliceRule{RuleSlice, RuleMean, RuleSign, RuleVotes} {
		rows = append(rows, SliceRow{Rule: rule, Overlap: 1, Compression: 4, Decay: 1, Rate: 4e-3})
	}
	rows = append(rows, SliceRow{Rule: RuleSlice, Overlap: 1, Compression: 4, Decay: 1, Rate: 4e-3, Batch: 2}, rows[2])
	o := SliceOptions{Text: plainText(t), Members: 2, Windows: 4, Batch: 4, HeldOut: 2, Rows: rows}
	r, err := MeasureSlices(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Runs) != len(rows) || r.Tokens != 4*4*sliceSequence {
		t.Fatalf("%d runs of %d tokens", len(r.Runs), r.Tokens)
	}
	for i, x := range r.Runs {
		if len(x.Losses) != 4 || !(x.Losses[3] < r.Start) || !(x.Relative > .5 && x.Relative < 2) || !(x.RelativePeers > .5) {
			t.Errorf("%+v: losses %v, relative %v and %v; before %v", rows[i], x.Losses, x.Relative, x.RelativePeers, r.Start)
		}
		if cut := x.Rule != RuleDistro; cut != (x.StateBytes > r.Params) || cut && x.Bytes-x.ValueBytes > x.ValueBytes {
			t.Errorf("%+v: bytes %d, values %d, state slice %d", rows[i], x.Bytes, x.ValueBytes, x.StateBytes)
		}
	}
	if r.Runs[6].Windows != 8 {
		t.Errorf("half the batch trains %d windows", r.Runs[6].Windows)
	}
	if first, last := r.Runs[2].Losses[3], r.Runs[7].Losses[3]; first != last {
		t.Errorf("the same run ends at %v and at %v", first, last)
	}
}

func TestBytesOfSlices(t *testing.T) {
	rows, err := MeasureSliceBytes([]string{"nano", "10m"}, []uint32{4, 100})
	if err != nil || len(rows) != 4 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if r.Values < r.Ideal || r.Reveal <= r.Values || r.Reveal > 2*r.Values || r.State < 4*r.Values || r.Dense != 4*r.Params || r.Distro == 0 {
			t.Errorf("%+v", r)
		}
	}
	if _, err := MeasureSliceBytes([]string{"none"}, []uint32{4}); err == nil {
		t.Error("an unknown model is measured")
	}
	if _, err := MeasureSliceBytes([]string{"nano"}, []uint32{0}); err == nil {
		t.Error("compression 0 is measured")
	}
}
