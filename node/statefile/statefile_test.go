package statefile

import (
	"bytes"
	"errors"
	"io/fs"
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
	return node.Saved{Run: wire.Sum("test"), Epoch: 2, Round: coordinator.Round(step) + 3, Step: step, Params: wire.Sum("params"), Optimizer: wire.Sum("state")}
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
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
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
	for at := 0; at < len(whole); at++ {
		b := bytes.Clone(whole)
		b[at] ^= 1 << (at % 8)
		if err := load(b); err == nil {
			t.Errorf("a bit changed in byte %d: no error", at)
		}
	}
	var corrupt *checkpoint.CorruptError
	for _, n := range []int{0, 1, 100, len(whole) - 1} {
		if err := load(whole[:n]); !errors.As(err, &corrupt) {
			t.Errorf("cut after %d bytes: got %v", n, err)
		}
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

// What a blob is read as is checked by who reads it; what is not whole cannot be read.
func TestBlobsStayUntilTheyAreDropped(t *testing.T) {
	store, path := newStore(t)
	if list, err := store.Blobs(); len(list) > 0 || err != nil {
		t.Fatalf("before the first: %v, %v", list, err)
	}
	root, data := wire.Sum("a"), []byte("the little-endian floats")
	for _, r := range []wire.Hash{root, wire.Sum("b"), root} {
		if err := store.SaveBlob(r, data); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := store.Blobs(); len(list) != 2 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	part := make([]byte, 6)
	if err := store.ReadBlob(root, 4, part); err != nil || string(part) != "little" {
		t.Errorf("read %q, %v", part, err)
	}
	if err := os.Truncate(store.blobPath(root), 9); err != nil {
		t.Fatal(err)
	}
	if err := store.ReadBlob(root, 4, part); err == nil {
		t.Error("read beyond the end")
	}
	for range 2 {
		if err := store.DropBlob(root); err != nil {
			t.Error(err)
		}
	}
	if list, _ := store.Blobs(); !slices.Equal(list, []wire.Hash{wire.Sum("b")}) {
		t.Errorf("left: %v", list)
	}
	if err := store.ReadBlob(root, 0, part); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dropped one: %v", err)
	}
	if _, ok, err := New(path, 1000, 1500).Load(); ok || err != nil {
		t.Errorf("a blob is taken for the state: %v, %v", ok, err)
	}
}
