package data

import (
	"slices"
	"testing"

	"github.com/entrain-network/entrain/wire"
)

// A set that begins at a sequence gives the others under their numbers from there on, and proves them under the old ones: for a referee that knows
// where the run begins. So does a mix.
func TestASetBeginsWhereAnotherRunEnded(t *testing.T) {
	plain := t.TempDir()
	m := mustPrepare(t, plain, files(t, text(60_000, "first")), options())
	mix, of, _ := mixOf(t)
	const first = 777
	seed := wire.Sum("seed")
	for dir, m := range map[string]Manifest{plain: m, mix: of} {
		whole := mustOpen(t, dir, m, Options{SequenceTokens: 50, Seed: seed})
		rest := mustOpen(t, dir, m, Options{SequenceTokens: 50, Seed: seed, First: first})
		want, got := make([]uint32, 51), make([]uint32, 51)
		rest.Ahead(0, 200)
		for i := range uint64(200) {
			if err := whole.Read(first+i, want); err != nil {
				t.Fatal(err)
			}
			if err := rest.Read(i, got); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%q: sequence %d is not sequence %d of the whole: %v", dir, i, first+i, err)
			}
			proof, err := rest.Prove(i)
			if err != nil {
				t.Fatal(err)
			}
			if err := Proven(got, m.Hash(), seed, first+i, proof); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%q: the proof of sequence %d: %v", dir, i, err)
			}
		}
	}
}
