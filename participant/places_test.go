package participant

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/wire"
)

// Two runs of one name, as of two chains, have a state directory each, and both are found again.
func TestRunsOfOneNameHaveTheirOwnState(t *testing.T) {
	p := Options{State: filepath.Join(t.TempDir(), "run-01234567"), DefaultState: true}
	first, second := wire.Sum("test/first"), wire.Sum("test/second")
	keep := func(dir string, run wire.Hash) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, stateFile), checkpoint.StateHeader{Run: run}.Append(nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(run wire.Hash, want string) {
		t.Helper()
		dir, unlock, err := p.apart(run, spec.Spec{})
		if err != nil || dir != want {
			t.Fatalf("got %s, %v, want %s", dir, err, want)
		}
		unlock()
	}
	beside := p.State + "-" + second.String()[:8]
	expect(first, p.State)
	keep(p.State, first)
	expect(first, p.State)
	expect(second, beside)
	keep(beside, second)
	expect(second, beside)
	expect(first, p.State)

	_, unlock, err := p.apart(second, spec.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, _, err := p.apart(second, spec.Spec{}); err == nil {
		t.Error("two members have one state directory")
	}
	p.DefaultState = false
	if _, _, err := p.apart(second, spec.Spec{}); err == nil || !strings.Contains(err.Error(), first.String()) {
		t.Errorf("a directory that the user named has another run's state: %v", err)
	}
}
