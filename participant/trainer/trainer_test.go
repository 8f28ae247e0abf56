package trainer

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/wire"
)

// A member that has no copy of the frozen model reads which option gives it one.
func TestAMissingFrozenModelNamesTheOption(t *testing.T) {
	model, err := llama.Preset("nano")
	if err != nil {
		t.Fatal(err)
	}
	model.LoRA = llama.LoRA{Rank: 4}
	for location, want := range map[string]string{"": "--from DIR", "s3://host/bucket/model": "--from s3://host/bucket/model", "/srv/model": "--from DIR"} {
		tr := &Trainer{Model: model, Spec: spec.Spec{Model: spec.Model{From: wire.Sum("test/frozen").String(), FromLocation: location}}}
		if _, err := tr.base(t.Context(), nil); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("location %q: %v, want %s", location, err, want)
		}
	}
}
