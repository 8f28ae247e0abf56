package participant

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/model"
)

// What a killed process left half-written is gone as soon as the next one starts.
func TestRemoveLeftovers(t *testing.T) {
	state := t.TempDir()
	checkpoints := filepath.Join(state, model.CheckpointsDir)
	if err := os.MkdirAll(filepath.Join(checkpoints, atomicfile.TempPrefix+"step"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"state", atomicfile.TempPrefix + "state"} {
		if err := os.WriteFile(filepath.Join(state, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeLeftovers(state); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(state, "*"))
	below, fault := filepath.Glob(filepath.Join(checkpoints, "*"))
	if hidden, _ := filepath.Glob(filepath.Join(state, atomicfile.TempPrefix+"*")); len(hidden) > 0 {
		left = append(left, hidden...)
	}
	if err != nil || fault != nil || len(left) != 2 || len(below) != 0 {
		t.Errorf("%v and %v are left", left, below)
	}
}
