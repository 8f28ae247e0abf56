package bucket

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// partBytes is the size of every part of a blob but the last.
const partBytes = PartChunks * merkle.ChunkBytes

// Parts returns the number of parts in a blob of the given size: at least one.
func Parts(size uint64) int { return int((merkle.BlobChunks(size) + PartChunks - 1) / PartChunks) }

// part returns the range of part i.
func part(size uint64, i int) (from, to uint64) {
	from = uint64(i) * partBytes
	return from, min(size, from+partBytes)
}

// index returns the roots of a blob's parts in the form of an object of kind index: 32 bytes each,
// in order. Every part but the last is a complete subtree of the blob's tree, so merkle.Root of the
// roots is the blob's root.
func index(data []byte) []wire.Hash {
	roots := make([]wire.Hash, Parts(uint64(len(data))))
	for i := range roots {
		from, to := part(uint64(len(data)), i)
		roots[i] = merkle.BlobRoot(data[from:to])
	}
	return roots
}

func appendIndex(dst []byte, roots []wire.Hash) []byte {
	for _, r := range roots {
		dst = wire.AppendHash(dst, r)
	}
	return dst
}

// indexMax is the size of the index of the largest blob.
const indexMax = BlobBytesMax / partBytes * len(wire.Hash{})

// parseIndex reads the roots of the parts of the blob root.
func parseIndex(b []byte, root wire.Hash) ([]wire.Hash, error) {
	const size = len(wire.Hash{})
	if len(b) == 0 || len(b)%size != 0 || len(b) > indexMax {
		return nil, fmt.Errorf("invalid index of %d bytes", len(b))
	}
	roots := make([]wire.Hash, len(b)/size)
	for i := range roots {
		roots[i] = wire.Hash(b[i*size:])
	}
	if merkle.Root(roots) != root {
		return nil, errors.New("the index does not have the blob's hash")
	}
	return roots, nil
}
