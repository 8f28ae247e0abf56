package results

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/entrain-network/entrain/tests/heap"
)

// A program that is killed while it writes loses that result only, and no later one.
func TestResultsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.jsonl")
	adding := func(want []string, more ...string) {
		t.Helper()
		f, kept, err := Open[string](path)
		if err != nil || !slices.Equal(kept, want) {
			t.Fatalf("%q, %v, want %q", kept, err, want)
		}
		for _, s := range more {
			if err := f.Add(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	adding(nil, "one", "two")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	if kept, err := Read[string](path); err != nil || !slices.Equal(kept, []string{"one"}) {
		t.Errorf("read %q, %v", kept, err)
	}
	adding([]string{"one"}, "three")
	adding([]string{"one", "three"})
}

func TestFilesOfSomethingElseStay(t *testing.T) {
	path, text := filepath.Join(t.TempDir(), "notes.txt"), "\"one\"\nIt is late.\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open[string](path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("opened: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != text {
		t.Errorf("left is %q, %v", b, err)
	}
	if _, err := Read[string](path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("read: %v", err)
	}
}

func TestWithoutAFileNothingIsKept(t *testing.T) {
	f, kept, err := Open[int]("")
	if err != nil || kept != nil || f.Add(7) != nil || f.Close() != nil {
		t.Errorf("%v, %v", kept, err)
	}
}
