package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Cheats are simulated seed by seed; what is in the file of results is not run again.
func TestSimulationOfCheatsGoesOnWhereItWas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seeds.jsonl")
	args := []string{"sim", "--clients", "6", "--adversaries", "2", "--kinds", "sign-flip,equivocate", "--steps", "20", "--verification", "50", "--results", file}
	first := ok(t, append(args, "--seeds", "1")...)
	for _, want := range []string{"honest members convicted of cheating: 0", "not convicted within 20 steps: 0", "wrong result", "equivocation", "they fit"} {
		if !strings.Contains(first, want) {
			t.Errorf("the verdict does not say %q:\n%s", want, first)
		}
	}
	// A line that was cut short, as by kill -9, is run again.
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b, []byte("\n")); n != 1 {
		t.Fatalf("%d results of one seed", n)
	}
	if again := ok(t, append(args, "--seeds", "1")...); again != first {
		t.Errorf("the same result is shown as\n%s", again)
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(after, b) {
		t.Errorf("the seed was run again: %v", err)
	}
	if err := os.WriteFile(file, append(b, `{"seed":2,"conf`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if two := ok(t, append(args, "--seeds", "2")...); !strings.Contains(two, "2 seeds of 6 clients") {
		t.Errorf("two seeds:\n%s", two)
	}
	// Results of another configuration do not count.
	if other := ok(t, append(args, "--seeds", "1", "--delay", "5ms")...); !strings.Contains(other, "1 seeds of 6 clients") {
		t.Errorf("another delay:\n%s", other)
	}
	for _, bad := range [][]string{{"--seeds", "0"}, {"--adversaries", "6"}, {"--kinds", "gremlin"}, {"--verification", "0"}, {"--adversaries", "-1"}, {"--workers", "0"}} {
		if _, err := lab(t, append(args, bad...)...); err == nil {
			t.Errorf("sim %v succeeds", bad)
		}
	}
}
