package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/lab/adversary"
	_ "github.com/entrain-network/entrain/tests/heap"
)

// lab runs a command and returns what it printed.
func lab(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out, words bytes.Buffer
	err := run(t.Context(), console{out: &out, err: &words}, args)
	return out.String(), err
}

// ok runs a command that must succeed and returns its results.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	out, err := lab(t, args...)
	if err != nil {
		t.Fatalf("lab %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// fails runs a command that must fail with an error that contains all of want.
func fails(t *testing.T, args []string, want ...string) {
	t.Helper()
	_, err := lab(t, args...)
	if err == nil {
		t.Errorf("lab %s: no error", strings.Join(args, " "))
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("lab %s: the error %q does not contain %q", strings.Join(args, " "), err, w)
		}
	}
}

func writeText(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAllAdversariesAreListed(t *testing.T) {
	out := ok(t, "adversaries")
	for _, k := range slices.Concat(adversary.Kinds(), adversary.Misleaders(), adversary.Aggregators(), adversary.Miners()) {
		if !strings.Contains(out, "  "+k.Name+" ") {
			t.Errorf("no line of %s in\n%s", k.Name, out)
		}
	}
	if !strings.Contains(out, "inverse") {
		t.Errorf("no lying validators in\n%s", out)
	}
}
