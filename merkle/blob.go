package merkle

// ChunkBytes is the size of a blob's chunks. At 256 KiB a model of a billion parameters has 15,259
// chunks, whose list of leaves (488 KB) still fits one answer of a peer, and a bad chunk costs its
// receiver little.
const ChunkBytes = 256 << 10

// BlobChunks returns the number of chunks of a blob of size bytes, at least one.
func BlobChunks(size uint64) uint64 {
	if size == 0 {
		return 1
	}
	return (size-1)/ChunkBytes + 1
}

// Chunk returns the range of bytes [from, to) that chunk i covers in a blob of size bytes. It
// panics if there is no chunk i.
func Chunk(size, i uint64) (from, to uint64) {
	if i >= BlobChunks(size) {
		panic("merkle: chunk beyond the blob")
	}
	from = i * ChunkBytes
	return from, min(size, from+ChunkBytes)
}

// BlobLeaves returns the leaves of the blob's chunks.
func BlobLeaves(data []byte) []Hash {
	size := uint64(len(data))
	leaves := make([]Hash, BlobChunks(size))
	for i := range leaves {
		from, to := Chunk(size, uint64(i))
		leaves[i] = Leaf(data[from:to])
	}
	return leaves
}

// BlobRoot returns the name of a blob: Root(BlobLeaves(data)).
func BlobRoot(data []byte) Hash {
	var t Tree
	size := uint64(len(data))
	for i := range BlobChunks(size) {
		from, to := Chunk(size, i)
		t.Add(Leaf(data[from:to]))
	}
	return t.Root()
}

// Blob computes the BlobRoot of bytes written piece by piece, and holds at most one chunk of them.
// Its zero value is the empty blob. It implements io.Writer.
type Blob struct {
	tree    Tree
	pending []byte // the incomplete chunk, shorter than ChunkBytes
}

// Write appends p to the blob. It never fails.
func (b *Blob) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if len(b.pending) == 0 && len(p) >= ChunkBytes { // a whole chunk needs no copy
			b.tree.Add(Leaf(p[:ChunkBytes]))
			p = p[ChunkBytes:]
			continue
		}
		take := min(ChunkBytes-len(b.pending), len(p))
		b.pending = append(b.pending, p[:take]...)
		p = p[take:]
		if len(b.pending) == ChunkBytes {
			b.tree.Add(Leaf(b.pending))
			b.pending = b.pending[:0]
		}
	}
	return n, nil
}

// Root returns the BlobRoot of the bytes written so far. More may follow.
func (b *Blob) Root() Hash {
	t := b.tree
	if len(b.pending) > 0 || t.Len() == 0 {
		t.Add(Leaf(b.pending))
	}
	return t.Root()
}
