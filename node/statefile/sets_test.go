package statefile

import (
	"bytes"
	"os"
	"reflect"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

func sampleSet(to coordinator.Round) node.SavedSet {
	return node.SavedSet{Run: wire.Sum("run"), To: to, Step: 7, From: wire.Sum("from"), Params: wire.Sum("to"), Payloads: [][]byte{{1, 2, 3}, {}, {4}}}
}

func TestSetsComeBackUntilTheyAreDropped(t *testing.T) {
	store, _ := newStore(t)
	if list, err := store.LoadSets(); len(list) > 0 || err != nil {
		t.Fatalf("before the first: %v, %v", list, err)
	}
	for to := range coordinator.Round(4) {
		if err := store.SaveSet(sampleSet(to + 8)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.DropSets(9); err != nil {
		t.Fatal(err)
	}
	list, err := store.LoadSets()
	if err != nil || !reflect.DeepEqual(list, []node.SavedSet{sampleSet(10), sampleSet(11)}) {
		t.Errorf("%d sets came back, %v: %+v", len(list), err, list)
	}
	if cases, err := store.LoadCases(); len(cases) > 0 || err != nil {
		t.Errorf("a set is taken for a case: %v", err)
	}
}

func TestADamagedSetIsLeftOut(t *testing.T) {
	store, _ := newStore(t)
	if err := store.SaveSet(sampleSet(5)); err != nil {
		t.Fatal(err)
	}
	path := store.setPath(5)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(whole); at += 5 {
		for _, b := range [][]byte{append(bytes.Clone(whole[:at]), append([]byte{whole[at] ^ 1}, whole[at+1:]...)...), whole[:at]} {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if list, err := store.LoadSets(); len(list) > 0 || err == nil {
				t.Errorf("damaged at byte %d: %d sets, %v", at, len(list), err)
			}
		}
	}
	if err := os.WriteFile(store.setPath(6), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := store.LoadSets(); len(list) > 0 || err == nil {
		t.Errorf("under another round's name: %d sets, %v", len(list), err)
	}
}

func FuzzParseSet(f *testing.F) {
	seal := func(body []byte) []byte {
		sum := wire.Sum(setDomain, body)
		return append(append([]byte(setMagic), sum[:]...), body...)
	}
	f.Add(appendSet(sampleSet(5)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := parseSet(seal(body))
		if err == nil && !bytes.Equal(appendSet(v), body) {
			t.Errorf("%x is read as what is written as %x", body, appendSet(v))
		}
	})
}
