package trace

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// smallTrace is a trace that takes a few milliseconds, in which chains have several slices.
func smallTrace(t testing.TB) *Trace {
	t.Helper()
	c := modelCase{"small", llama.Config{Vocab: 260, Hidden: 5, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 2, FFN: 7, Context: 100, Theta: 10000,
		Eps: 1e-5}, 100, 2, 0}
	made, err := Run(context.Background(), nil, gameProgram(t, c), c.allSources())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// truth is the hash of a slice of an honest trace.
func (t *Trace) truth(tb testing.TB, op, tile, slice uint32) wire.Hash {
	tb.Helper()
	if err := t.openTile(context.Background(), op, tile); err != nil {
		tb.Fatal(err)
	}
	return t.opened.slices[slice]
}

// TestHonestEvidenceIsTaken opens a slice of every operation, in both sequences.
func TestHonestEvidenceIsTaken(t *testing.T) {
	made := smallTrace(t)
	source := prng.New(wire.Sum("entrain/test"), "slices")
	for op := range made.p.Len() {
		o := made.p.Op(op)
		tile := uint32(source.Uint64n(uint64(o.Tiles())))
		slice := uint32(source.Uint64n(uint64(o.Slices(tile))))
		b, err := made.Evidence(context.Background(), op, tile, slice)
		if err != nil {
			t.Fatalf("%s: %v", o.Name(), err)
		}
		got, err := Judge(made.p, openSources{&made.machine}, op, tile, slice, made.Root(), b)
		if err != nil || got != made.truth(t, op, tile, slice) {
			t.Errorf("%s, tile %d, slice %d: %v, or another hash", o.Name(), tile, slice, err)
		}
	}
	if _, err := made.Evidence(context.Background(), made.p.Len(), 0, 0); err == nil {
		t.Error("there is evidence for an operation beyond the program")
	}
	if _, err := made.SliceChildren(context.Background(), 0, made.p.Op(0).Tiles(), 1, 0); err == nil {
		t.Error("there are slices of a tile beyond the value")
	}
}

// TestEvidenceThatWasTamperedWithProvesNothing changes single bytes of evidence for each kind of
// operation, and its length.
func TestEvidenceThatWasTamperedWithProvesNothing(t *testing.T) {
	made := smallTrace(t)
	open := openSources{&made.machine}
	for _, op := range kinds(made.p) {
		o := made.p.Op(op)
		tile := longest(o)
		slice := o.Slices(tile) - 1
		b, err := made.Evidence(context.Background(), op, tile, slice)
		if err != nil {
			t.Fatalf("%s: %v", o.Name(), err)
		}
		got, err := Judge(made.p, open, op, tile, slice, made.Root(), b)
		if err != nil || got != made.truth(t, op, tile, slice) {
			t.Fatalf("%s: %v, or another hash", o.Name(), err)
		}
		refused := func(what string, b []byte) {
			if _, err := Judge(made.p, open, op, tile, slice, made.Root(), b); !errors.Is(err, ErrEvidence) {
				t.Errorf("%s: evidence %s is taken: %v", o.Name(), what, err)
			}
		}
		for i := 0; i < len(b); i += 1 + len(b)/23 {
			changed := slices.Clone(b)
			changed[i] ^= 0x40
			refused("with a byte changed", changed)
		}
		refused("with a byte more", append(slices.Clone(b), 0))
		if len(b) > 0 {
			refused("with a byte less", b[:len(b)-1])
			if o.Slices(tile) > 1 || len(o.Reads(tile, slice)) > 0 && o.Reads(tile, slice)[0].Source == Value {
				if _, err := Judge(made.p, open, op, tile, slice, wire.Sum("entrain/test"), b); !errors.Is(err, ErrEvidence) {
					t.Errorf("%s: evidence under another trace is taken: %v", o.Name(), err)
				}
			}
		}
		for _, at := range [][3]uint32{{made.p.Len(), tile, slice}, {op, o.Tiles(), slice}, {op, tile, o.Slices(tile)}} {
			if _, err := Judge(made.p, open, at[0], at[1], at[2], made.Root(), b); !errors.Is(err, ErrEvidence) {
				t.Errorf("%s: evidence for slice %v is taken: %v", o.Name(), at, err)
			}
		}
	}
	if _, err := Judge(made.p, open, 0, 0, 0, made.Root(), make([]byte, evidenceBytesMax+1)); !errors.Is(err, ErrEvidence) {
		t.Errorf("evidence that is too long is taken: %v", err)
	}
}

func TestChunksAreProven(t *testing.T) {
	blob := make([]float32, 2*ChunkWords+9)
	for i := range blob {
		blob[i] = float32(i)
	}
	leaves := merkle.BlobLeaves(tensor.Bytes(blob))
	root := merkle.Root(leaves)
	for i := range uint32(3) {
		b := ProveChunk(blob, leaves, i)
		words, err := OpenChunk(root, len(blob), i, b)
		if err != nil || !slices.Equal(words, chunk(blob, i)) {
			t.Fatalf("chunk %d: %v, or other words", i, err)
		}
		for _, wrong := range [][]byte{b[:len(b)-1], append(slices.Clone(b), 0), append(slices.Clone(b), make([]byte, 32)...), b[4:], nil} {
			if _, err := OpenChunk(root, len(blob), i, wrong); err == nil {
				t.Errorf("chunk %d: evidence of %d bytes for %d is taken", i, len(wrong), len(b))
			}
		}
		if _, err := OpenChunk(root, len(blob), (i+1)%3, b); err == nil {
			t.Errorf("chunk %d is taken for another", i)
		}
	}
	if _, err := OpenChunk(root, len(blob), 3, nil); err == nil {
		t.Error("a chunk beyond the blob is taken")
	}
}

// FuzzEvidence: whatever is taken for evidence gives the true hash.
func FuzzEvidence(f *testing.F) {
	made := smallTrace(f)
	for _, op := range kinds(made.p) {
		o := made.p.Op(op)
		tile := longest(o)
		for _, slice := range []uint32{0, o.Slices(tile) - 1} {
			b, err := made.Evidence(context.Background(), op, tile, slice)
			if err != nil {
				f.Fatal(err)
			}
			if len(b) < 1<<14 { // larger seeds slow the fuzzer down and have nothing new
				f.Add(op, tile, slice, b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, op, tile, slice uint32, evidence []byte) {
		got, err := Judge(made.p, openSources{&made.machine}, op, tile, slice, made.Root(), evidence)
		if err != nil {
			if !errors.Is(err, ErrEvidence) {
				t.Fatal(err)
			}
			return
		}
		if got != made.truth(t, op, tile, slice) {
			t.Errorf("operation %d, tile %d, slice %d: another hash than the true one", op, tile, slice)
		}
	})
}

func FuzzChunk(f *testing.F) {
	blob := make([]float32, ChunkWords+3)
	leaves := merkle.BlobLeaves(tensor.Bytes(blob))
	f.Add(uint32(1), ProveChunk(blob, leaves, 1))
	f.Add(uint32(7), []byte{})
	root := merkle.Root(leaves)
	f.Fuzz(func(t *testing.T, i uint32, evidence []byte) {
		words, err := OpenChunk(root, len(blob), i, evidence)
		if err == nil && !slices.Equal(words, chunk(blob, i)) {
			t.Error("other words than the blob's")
		}
	})
}

// TestRunEnds: a context ends it, and so do tokens that cannot be had.
func TestRunEnds(t *testing.T) {
	c := modelCases()[0]
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ended, nil, c.program(t), c.sources()); !errors.Is(err, context.Canceled) {
		t.Errorf("a run whose context ended says %v", err)
	}
	gone, src := errors.New("gone"), c.sources()
	src.Tokens = func(uint32) ([]uint32, error) { return nil, gone }
	if _, err := Run(context.Background(), nil, c.program(t), src); !errors.Is(err, gone) {
		t.Errorf("a run without tokens says %v", err)
	}
}
