package parallel_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/merkle/parallel"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

func TestGeneratedFileIsWhatTheGeneratorWrites(t *testing.T) {
	want, err := exec.Command("go", "run", "./internal/gen").Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("lanes_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("lanes_amd64.s is not what the generator writes: run go generate")
	}
}

// random returns so many bytes.
func random(size int) []byte {
	source := prng.New(wire.Sum("test"), "bytes")
	b := make([]byte, 0, size+8)
	for len(b) < size {
		b = wire.AppendU64(b, source.Uint64())
	}
	return b[:size]
}

// Every number of lanes in use, short last chunks, and each kernel.
func TestLeavesAreThoseOfPackageMerkle(t *testing.T) {
	const chunk = merkle.ChunkBytes
	all := random(36*chunk + 7)
	want := merkle.BlobLeaves(all[:36*chunk])
	for _, kernel := range exact.Kernels() {
		pool := exact.NewPoolOf(2, kernel)
		defer pool.Close()
		sizes := []int{0, 1, chunk - 1, chunk, chunk + 1, 5*chunk - 1, 16*chunk - 1, 16*chunk + 1, 20*chunk + 63, 21 * chunk, 36*chunk + 7}
		for n := 2; n <= 17; n++ {
			sizes = append(sizes, n*chunk)
		}
		for _, size := range sizes {
			data := all[:size]
			got := parallel.Leaves(pool, data)
			whole := size / chunk
			if !slices.Equal(got[:whole], want[:whole]) {
				t.Errorf("%s: the leaves of %d bytes are not those of package merkle", kernel.Name(), size)
			}
			if rest := data[whole*chunk:]; size == 0 || len(rest) > 0 {
				if len(got) != whole+1 || got[whole] != merkle.Leaf(rest) {
					t.Errorf("%s: the last leaf of %d bytes is wrong", kernel.Name(), size)
				}
			} else if len(got) != whole {
				t.Errorf("%s: %d leaves of %d bytes, want %d", kernel.Name(), len(got), size, whole)
			}
		}
	}
}

// Bytes at any alignment, and of one kind.
func TestLeavesOfUnalignedAndUniformBytes(t *testing.T) {
	pool := exact.NewPool(1)
	defer pool.Close()
	data := slices.Concat(random(6*merkle.ChunkBytes), bytes.Repeat([]byte{0}, 5*merkle.ChunkBytes), bytes.Repeat([]byte{255}, 6*merkle.ChunkBytes))
	for _, offset := range []int{0, 1, 3, 4, 63} {
		if got, want := parallel.Leaves(pool, data[offset:]), merkle.BlobLeaves(data[offset:]); !slices.Equal(got, want) {
			t.Errorf("the leaves of bytes that begin at %d are not those of package merkle", offset)
		}
	}
}

// FuzzLeaves repeats the fuzzer's bytes over a few chunks, in a length that differs from chunk to chunk.
func FuzzLeaves(f *testing.F) {
	pool := exact.NewPool(1)
	f.Cleanup(pool.Close)
	f.Add([]byte("seed"), uint32(6*merkle.ChunkBytes))
	f.Fuzz(func(t *testing.T, pattern []byte, size uint32) {
		size %= 18 * merkle.ChunkBytes
		data := bytes.Repeat(append(pattern, 1), int(size)/(len(pattern)+1)+1)[:size]
		if !slices.Equal(parallel.Leaves(pool, data), merkle.BlobLeaves(data)) {
			t.Errorf("the leaves of %d bytes are not those of package merkle", size)
		}
	})
}

func BenchmarkLeaves(b *testing.B) {
	data := random(200 << 20)
	for _, workers := range []int{1, 2} {
		for _, kernel := range exact.Kernels() {
			b.Run(fmt.Sprintf("workers=%d/%s", workers, kernel.Name()), func(b *testing.B) {
				pool := exact.NewPoolOf(workers, kernel)
				defer pool.Close()
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					parallel.Leaves(pool, data)
				}
			})
		}
	}
}
