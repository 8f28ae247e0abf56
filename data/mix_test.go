package data

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/data/order"
	"github.com/entrain-network/entrain/wire"
)

// mixOf makes a mix of three sets, of weights 3, 1 and 2, and returns it and the sets' directories.
func mixOf(t *testing.T) (dir string, m Manifest, sets []string) {
	t.Helper()
	for i, size := range []int{40_000, 9_000, 25_000} {
		o := options()
		o.Name = []string{"web", "code", "books"}[i]
		o.HeldOutPermille = 200
		d := filepath.Join(t.TempDir(), o.Name)
		mustPrepare(t, d, files(t, text(size, o.Name)), o)
		sets = append(sets, d)
	}
	dir = filepath.Join(t.TempDir(), "mix")
	mix, err := MakeMix(t.Context(), dir, "mixed", []uint32{3, 1, 2}, sets)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = ReadManifest(dir); err != nil || m.Hash() != mix.Hash() || m.Name != "mixed" {
		t.Fatalf("the mix %s is read as %s, %q: %v", mix.Hash(), m.Hash(), m.Name, err)
	}
	return dir, m, sets
}

// Of every six sequences in a row three are of the first set, one of the second and two of the third; and each set gives its sequences as it does alone.
func TestMixHasTheProportionsOfItsWeights(t *testing.T) {
	dir, m, dirs := mixOf(t)
	seed := wire.Sum("seed")
	mix := mustOpen(t, dir, m, Options{SequenceTokens: 100, Seed: seed})
	var alone []*Set
	for i, d := range dirs {
		of, err := ReadManifest(d)
		if err != nil {
			t.Fatal(err)
		}
		alone = append(alone, mustOpen(t, d, of, Options{SequenceTokens: 100, Seed: order.MixSeed(seed, i)}))
	}
	if want := min(alone[0].Len()/3, alone[1].Len(), alone[2].Len()/2) * 6; mix.Len() != want || want == 0 {
		t.Errorf("the mix has %d sequences, want %d", mix.Len(), want)
	}
	next := make([]uint64, 3)
	got, want := make([]uint32, 101), make([]uint32, 101)
	orders := make(map[string]bool)
	for block := uint64(0); block < 2*mix.Len()/6; block++ {
		counts, order := make([]uint64, 3), ""
		seen := make([][]uint64, 3)
		for i := 6 * block; i < 6*block+6; i++ {
			set, k := mix.mixed.mix.pick(seed, i)
			counts[set]++
			order += string(rune('a' + set))
			seen[set] = append(seen[set], k)
			if err := errors.Join(mix.Read(i, got), alone[set].Read(k, want)); err != nil || !slices.Equal(got, want) {
				t.Fatalf("sequence %d is not sequence %d of set %d: %v", i, k, set, err)
			}
		}
		if !slices.Equal(counts, []uint64{3, 1, 2}) {
			t.Fatalf("from sequence %d on there are %v of the sets", 6*block, counts)
		}
		for set := range seen { // those of a block follow those of the block before, in any order
			slices.Sort(seen[set])
			for _, k := range seen[set] {
				if k != next[set] {
					t.Fatalf("set %d gives %d after %d", set, k, next[set])
				}
				next[set]++
			}
		}
		orders[order] = true
	}
	if len(orders) < 5 {
		t.Errorf("the order within blocks is one of %d", len(orders))
	}
	other := mustOpen(t, dir, m, Options{SequenceTokens: 100, Seed: wire.Sum("other")})
	same := 0
	for i := range uint64(60) {
		if errors.Join(mix.Read(i, got), other.Read(i, want)) == nil && slices.Equal(got, want) {
			same++
		}
	}
	if same > 20 {
		t.Errorf("with another seed %d of 60 sequences are the same", same)
	}
}

func TestHeldOutOfAMixIsThatOfItsSets(t *testing.T) {
	dir, m, dirs := mixOf(t)
	mix := mustOpen(t, dir, m, Options{SequenceTokens: 100})
	h := mix.HeldOut()
	if h.Len() == 0 || h.Len()%6 != 0 {
		t.Fatalf("%d sequences are held out", h.Len())
	}
	first, err := ReadManifest(dirs[1])
	if err != nil {
		t.Fatal(err)
	}
	alone := mustOpen(t, dirs[1], first, Options{SequenceTokens: 100}).HeldOut()
	got, want := make([]uint32, 101), make([]uint32, 101)
	for i := range h.Len() / 6 { // the second set has the fourth of every six
		if err := errors.Join(h.Read(6*i+3, got), alone.Read(i, want)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("held-out sequence %d: %v", i, err)
		}
	}
	if h.Read(h.Len(), got) == nil {
		t.Error("there is one more than there are")
	}
}

func TestMixIsReadFromAfar(t *testing.T) {
	dir, m, _ := mixOf(t)
	want := mustOpen(t, dir, m, Options{SequenceTokens: 1000})
	w := mem.New(time.Now, 1)
	at := inBucket(t, w, dir, m, "data")
	o := quick()
	o.S3 = w.Open
	static := serve(t, Handler(dir, m))
	for _, addresses := range [][]string{{static}, {at.URL()}, {serve(t, Handler(t.TempDir(), m)), static}} {
		s := mustOpenURL(t, m, o, addresses...)
		s.Ahead(2, 9)
		sameSequences(t, s, want)
		if tok, err := s.Tokenizer(); err != nil || tok.Hash() != m.Tokenizer.Hash {
			t.Errorf("the tokenizer of %v: %v", addresses, err)
		}
	}
	o.Verify = true
	sameSequences(t, mustOpenURL(t, m, o, static), want)
}

func TestSequencesOfAMixAreProven(t *testing.T) {
	dir, m, _ := mixOf(t)
	seed := wire.Sum("seed")
	mix := mustOpen(t, dir, m, Options{SequenceTokens: 100, Seed: seed})
	got, want := make([]uint32, 101), make([]uint32, 101)
	for i := uint64(0); i < 2*mix.Len(); i += 5 {
		proof, err := mix.Prove(i)
		if err != nil || len(proof) > mix.ProofMax() {
			t.Fatalf("the proof of sequence %d has %d of at most %d bytes: %v", i, len(proof), mix.ProofMax(), err)
		}
		if err := errors.Join(Proven(got, m.Hash(), seed, i, proof), mix.Read(i, want)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("sequence %d is proven to be another: %v", i, err)
		}
		if Proven(got, m.Hash(), seed, i+1, proof) == nil && mix.Read(i+1, want) == nil && !slices.Equal(got, want) {
			t.Errorf("the proof of sequence %d proves another", i)
		}
		if Proven(got, wire.Sum("other"), seed, i, proof) == nil {
			t.Error("a proof counts for another mix")
		}
		proof[len(proof)/2] ^= 1
		if Proven(got, m.Hash(), seed, i, proof) == nil {
			t.Error("a changed proof is accepted")
		}
	}
	nested := wire.AppendVar(nil, Mix{1, "outer", []Component{{"inner", 1, m.Hash()}}}.Bytes())
	inner, err := mix.Prove(0)
	if err != nil {
		t.Fatal(err)
	}
	outer := wire.SHA256(Mix{1, "outer", []Component{{"inner", 1, m.Hash()}}}.Bytes())
	if err := Proven(got, outer, seed, 0, append(nested, inner...)); err == nil || !strings.Contains(err.Error(), "mix of mixes") {
		t.Errorf("a mix of mixes: %v", err)
	}
}

func TestBadMixesAreRefused(t *testing.T) {
	dir, m, sets := mixOf(t)
	foreign := t.TempDir()
	other, err := ReadManifest(sets[1])
	if err != nil {
		t.Fatal(err)
	}
	other.Tokenizer.Hash[0]++
	if err := os.WriteFile(filepath.Join(foreign, manifestFile), other.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string][]string{"twice": {sets[0], sets[0]}, "another tokenizer": {sets[0], foreign}, "a mix": {dir}, "nothing": {}, "no set": {t.TempDir()}} {
		to := filepath.Join(t.TempDir(), "mix")
		if _, err := MakeMix(t.Context(), to, "mixed", slices.Repeat([]uint32{1}, len(from)), from); err == nil {
			t.Errorf("a mix of %s is made", name)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("a mix of %s leaves something", name)
		}
	}
	if _, err := MakeMix(t.Context(), filepath.Join(t.TempDir(), "x"), "mixed", []uint32{0}, sets[:1]); err == nil {
		t.Error("a weight of 0 is taken")
	}
	manifest := filepath.Join(dir, "code", manifestFile)
	b, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(manifest); err != nil { // it is a link to the set's own
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, bytes.Replace(b, []byte(`"name": "code"`), []byte(`"name": "cade"`), 1), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, m.Hash(), Options{SequenceTokens: 100}); err == nil || !strings.Contains(err.Error(), `set "code"`) {
		t.Errorf("a set that is another: %v", err)
	}
}

func FuzzParseMix(f *testing.F) {
	f.Add(Mix{1, "mixed", []Component{{"web", 3, wire.Sum("a")}, {"code", 1, wire.Sum("b")}}}.Bytes())
	f.Add([]byte(`{"mix":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMix(b)
		if err != nil {
			return
		}
		if !bytes.Equal(m.Bytes(), b) || !isMix(b) {
			t.Errorf("%q is written as %q", b, m.Bytes())
		}
		if set, _ := m.pick(wire.Hash{}, 12345); set >= len(m.Components) {
			t.Errorf("set %d of %d is picked", set, len(m.Components))
		}
	})
}
