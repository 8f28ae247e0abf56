package statefile

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

func sampleCase(round coordinator.Round) (c node.SavedCase) {
	c.Share, c.Step = client.Share{Round: round, Member: 4}, 3
	c.Spans = []batch.Span{{Start: 1 << 40, Count: 3}, {Start: 7, Count: 1}}
	c.Commitment = dispute.Commitment{Run: wire.Sum("test"), Epoch: 2, Round: round, Member: 4, Prev: wire.Sum("prev"), Loss: 9}
	c.Signature = c.Commitment.Sign(key.FromSeed([32]byte{1})).Signature
	return c
}

func TestCasesComeBackUntilTheyAreDropped(t *testing.T) {
	store, _ := newStore(t)
	if list, err := store.LoadCases(); len(list) > 0 || err != nil {
		t.Fatalf("before the first: %v, %v", list, err)
	}
	fresh := sampleCase(9)
	fresh.Fresh, fresh.Spans = true, nil
	for _, c := range []node.SavedCase{sampleCase(5), fresh} {
		if err := store.SaveCase(c); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.LoadCases()
	if err != nil || !reflect.DeepEqual(got, []node.SavedCase{sampleCase(5), fresh}) {
		t.Errorf("%d cases came back, %v, not as they were saved", len(got), err)
	}
	for range 2 {
		if err := store.DropCase(client.Share{Round: 5, Member: 4}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := store.LoadCases(); err != nil || len(got) != 1 || got[0].Round != 9 {
		t.Errorf("after one was dropped: %d cases, %v", len(got), err)
	}
	if _, ok, err := store.Load(); ok || err != nil {
		t.Errorf("a case is taken for the state: %v, %v", ok, err)
	}
}

func TestADamagedCaseIsLeftOut(t *testing.T) {
	store, path := newStore(t)
	if err := store.SaveCase(sampleCase(5)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + casePrefix + "*")
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(whole); at += 7 {
		for _, b := range [][]byte{append(bytes.Clone(whole[:at]), append([]byte{whole[at] ^ 1}, whole[at+1:]...)...), whole[:at]} {
			if err := os.WriteFile(files[0], b, 0o600); err != nil {
				t.Fatal(err)
			}
			list, err := store.LoadCases()
			if len(list) > 0 || err == nil {
				t.Errorf("damaged at byte %d: %d cases, %v", at, len(list), err)
			}
			if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
				t.Error("what cannot be read is still there")
			}
		}
	}
}

func FuzzParseCase(f *testing.F) {
	f.Add(appendCase(nil, sampleCase(5)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseCase(b)
		if err != nil {
			return
		}
		if again := appendCase(nil, c); !bytes.Equal(again, b) {
			t.Errorf("%x is read as what is written as %x", b, again)
		}
	})
}

func FuzzReadCase(f *testing.F) {
	store := New(filepath.Join(f.TempDir(), "state"), 1000, 1500)
	if err := store.SaveCase(sampleCase(5)); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(store.casePath(client.Share{Round: 5, Member: 4}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := readCase(b); err == nil && !bytes.HasPrefix(b, []byte(caseMagic)) {
			t.Error("read without the magic bytes")
		}
	})
}
