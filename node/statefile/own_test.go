package statefile

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/node"
)

func sampleOwn(round coordinator.Round) node.OwnResult {
	return node.OwnResult{Round: round, Signed: []byte{1, 2, byte(round)}, Update: []byte{byte(round), 7, 9}}
}

func TestTheLastOwnResultsComeBack(t *testing.T) {
	store, path := newStore(t)
	if list, err := store.LoadOwn(); len(list) > 0 || err != nil {
		t.Fatalf("before the first: %v, %v", list, err)
	}
	for round := coordinator.Round(6); round < 11; round++ {
		if err := store.SaveOwn(sampleOwn(round), 3); err != nil {
			t.Fatal(err)
		}
	}
	list, err := store.LoadOwn()
	if want := []node.OwnResult{sampleOwn(9), sampleOwn(10), sampleOwn(8)}; err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%v came back, %v, want %v", list, err, want)
	}
	again := sampleOwn(10) // saving it is tried again
	again.Update = nil
	if err := store.SaveOwn(again, 3); err != nil {
		t.Fatal(err)
	}
	if list, err := store.LoadOwn(); err != nil || len(list) != 3 || len(list[1].Update) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	if _, ok, err := New(path, 1000, 1500).Load(); ok || err != nil {
		t.Errorf("an own result is taken for the state: %v, %v", ok, err)
	}
}

// A member that loses its state directory, or gets an older one back, still has what it signed last.
func TestTheLastSignedResultOutlivesTheDirectory(t *testing.T) {
	store, path := newStore(t)
	signed := filepath.Join(t.TempDir(), "key.signed", "run")
	store.Beside(signed)
	for round := coordinator.Round(6); round < 9; round++ {
		if err := store.SaveOwn(sampleOwn(round), 3); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := store.LoadOwn(); err != nil || len(list) != 3 {
		t.Errorf("with the directory: %v, %v", list, err)
	}
	want := sampleOwn(8)
	want.Update = nil
	lost := New(filepath.Join(t.TempDir(), "state"), 1000, 1500)
	lost.Beside(signed)
	if list, err := lost.LoadOwn(); err != nil || !reflect.DeepEqual(list, []node.OwnResult{want}) {
		t.Errorf("without the directory: %v, %v", list, err)
	}
	if err := os.Remove(store.ownPath(8 % 3)); err != nil {
		t.Fatal(err)
	}
	if list, err := store.LoadOwn(); err != nil || !reflect.DeepEqual(list[len(list)-1], want) {
		t.Errorf("with an older directory: %v, %v", list, err)
	}
	if err := os.Truncate(signed, 40); err != nil {
		t.Fatal(err)
	}
	if list, err := lost.LoadOwn(); err == nil {
		t.Errorf("a record that cannot be read is taken for none: %v", list)
	}
	if err := New(path, 1000, 1500).SaveOwn(sampleOwn(9), 3); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.signed") // in the directory's place
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	store.Beside(filepath.Join(file, "run"))
	if err := store.SaveOwn(sampleOwn(9), 3); err == nil {
		t.Error("a record that was not written is not reported")
	}
}

// A commitment that cannot be read must not be taken for none.
func TestADamagedOwnResultIsReported(t *testing.T) {
	store, _ := newStore(t)
	if err := store.SaveOwn(sampleOwn(5), 2); err != nil {
		t.Fatal(err)
	}
	path := store.ownPath(1)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range len(whole) - len(sampleOwn(5).Update) {
		for _, b := range [][]byte{append(bytes.Clone(whole[:at]), append([]byte{whole[at] ^ 1}, whole[at+1:]...)...), whole[:at]} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if list, err := store.LoadOwn(); len(list) > 0 || err == nil {
				t.Errorf("damaged at byte %d: %v, %v", at, list, err)
			}
		}
	}
}

func FuzzParseOwn(f *testing.F) {
	f.Add(append(appendOwn(nil, sampleOwn(5)), 1, 2, 3))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := parseOwn(b)
		if err == nil && !bytes.Equal(append(appendOwn(nil, o), o.Update...), b) {
			t.Errorf("%x is read as %v", b, o)
		}
	})
}
