package statefile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

func sample(step coordinator.Step) node.Saved {
	s := node.Saved{Run: wire.Sum("test"), Epoch: 2, Round: coordinator.Round(step) + 3, Step: step, Params: make([]float32, 1000), Optimizer: make([]float32, 1500)}
	for i := range s.Params {
		s.Params[i] = float32(i) + float32(step)/8
	}
	for i := range s.Optimizer {
		s.Optimizer[i] = -float32(i) / 3
	}
	return s
}

func newStore(t *testing.T) (*Store, string) {
	path := filepath.Join(t.TempDir(), "a", "state")
	return New(path, 1000, 1500), path
}

func TestStateComesBackAsItWasSavedLast(t *testing.T) {
	store, _ := newStore(t)
	if _, ok, err := store.Load(); ok || err != nil {
		t.Fatalf("before the first save: ok %v, %v", ok, err)
	}
	for step := range coordinator.Step(3) {
		if err := store.Save(sample(step)); err != nil {
			t.Fatal(err)
		}
	}
	got, ok, err := store.Load()
	want := sample(2)
	if !ok || err != nil {
		t.Fatalf("ok %v, %v", ok, err)
	}
	if got.Run != want.Run || got.Epoch != want.Epoch || got.Round != want.Round || got.Step != want.Step ||
		!slices.Equal(got.Params, want.Params) || !slices.Equal(got.Optimizer, want.Optimizer) {
		t.Errorf("got round %d, step %d, which differs from what was saved", got.Round, got.Step)
	}
}

// Wherever a single bit changes or the file ends, it is refused: a state that is slightly wrong would be worse than none.
func TestDamageIsRefused(t *testing.T) {
	store, path := newStore(t)
	if err := store.Save(sample(7)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	load := func(b []byte) error {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, ok, err := store.Load()
		if ok {
			t.Error("a damaged state was loaded")
		}
		return err
	}
	for at := 0; at < len(whole); at += 61 {
		b := bytes.Clone(whole)
		b[at] ^= 1 << (at % 8)
		if err := load(b); err == nil {
			t.Errorf("a bit changed in byte %d: no error", at)
		}
	}
	var corrupt *checkpoint.CorruptError
	for _, n := range []int{0, 1, 100, 168, 4168, len(whole) - 1} {
		if err := load(whole[:n]); !errors.As(err, &corrupt) {
			t.Errorf("cut after %d bytes: got %v", n, err)
		}
	}
	if err := load(append(bytes.Clone(whole), 0)); !errors.As(err, &corrupt) {
		t.Errorf("a byte more: got %v", err)
	}
	if _, _, err := New(path, 999, 1500).Load(); err == nil {
		t.Error("a state of another model was loaded")
	}
}

func TestFailedSaveKeepsTheStateBefore(t *testing.T) {
	store, path := newStore(t)
	if err := store.Save(sample(1)); err != nil {
		t.Fatal(err)
	}
	blocked := New(filepath.Join(path, "below a file", "state"), 1000, 1500)
	if err := blocked.Save(sample(2)); err == nil {
		t.Error("saved below a file")
	}
	got, ok, err := store.Load()
	if !ok || err != nil || got.Step != 1 {
		t.Errorf("got step %d, ok %v, %v", got.Step, ok, err)
	}
}
