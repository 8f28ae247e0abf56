package study

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/wire"
)

func TestResultsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.jsonl")
	a, b := wire.Sum("a"), wire.Sum("b")
	open := func() *keeper[[]float64] {
		t.Helper()
		k, err := openKeeper[[]float64](path)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	put := func(k *keeper[[]float64], id wire.Hash, v float64) {
		t.Helper()
		if err := k.put(id, "something", []float64{v}); err != nil {
			t.Fatal(err)
		}
	}
	k := open()
	put(k, a, 1.25)
	put(k, b, 2)
	if err := k.close(); err != nil {
		t.Fatal(err)
	}
	// The program was killed while it wrote the second.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	k = open()
	if v, ok := k.get(a); !ok || v[0] != 1.25 {
		t.Errorf("kept %v, %v", v, ok)
	}
	if v, ok := k.get(b); ok {
		t.Errorf("half a line is %v", v)
	}
	put(k, b, 3)
	if err := k.close(); err != nil {
		t.Fatal(err)
	}
	k = open()
	if v, ok := k.get(b); !ok || v[0] != 3 {
		t.Errorf("after the repair kept %v, %v", v, ok)
	}
	if err := k.close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{\"id\":7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openKeeper[[]float64](path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "at byte 0") {
		t.Errorf("a file of something else: %v", err)
	}
}

func TestWithoutAFileNothingIsKept(t *testing.T) {
	k, err := openKeeper[int]("")
	if err != nil {
		t.Fatal(err)
	}
	if err := k.put(wire.Sum("a"), "something", 7); err != nil {
		t.Error(err)
	}
	if v, ok := k.get(wire.Sum("a")); !ok || v != 7 {
		t.Errorf("%v, %v in the same run", v, ok)
	}
	if err := k.close(); err != nil {
		t.Error(err)
	}
}
