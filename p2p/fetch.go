package p2p

import (
	"fmt"
	"strings"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// A Ref names a blob: merkle.BlobRoot of its bytes, and how many they are.
type Ref struct {
	Root wire.Hash
	Size uint64 // bytes
}

// Chunks returns the number of the blob's chunks, at least one.
func (r Ref) Chunks() uint32 {
	return uint32(merkle.BlobChunks(r.Size))
}

// chunkLen is the length of chunk i in bytes.
func (r Ref) chunkLen(i uint32) int {
	from, to := merkle.Chunk(r.Size, uint64(i))
	return int(to - from)
}

// A Fetch is a wish for a blob.
type Fetch struct {
	Ref Ref

	// First, if it is not zero, is the peer to ask first, and From are the others, the preferred
	// ones first. A few are asked at once; the rest step in for those that are slow, lack the
	// blob or lie. Many fetches may share From, which nobody changes.
	First key.Public
	From  []key.Public

	// Self is the fetching participant, filled in by the Network. Participants that fetch the same
	// blob at once start at different places because of it, and help each other.
	Self key.Public

	// Have, if not nil, gives chunks that are already here, or nil. It is asked once
	// for each chunk and not believed: a chunk counts if it hashes to leaf. With
	// [FetchError.Chunk] a fetch goes on where another one failed.
	Have func(i uint32, leaf wire.Hash) []byte

	// Keep, if not nil, is called with each chunk that a peer sent and that was not held, once it
	// is verified. It must not keep the slice.
	Keep func(leaf wire.Hash, chunk []byte)

	// Leaves, if not nil, is the leaf list if it is already here; not believed either.
	Leaves []wire.Hash

	// Into, if not nil, takes the chunks in place of memory: the fetch brings those that it lacks,
	// and no bytes in the end. Nobody else writes to it meanwhile. If its file cannot be written,
	// ErrFile ends the fetch.
	Into *Partial

	// Progress, if not nil, is called with the verified and the total bytes
	// whenever the former grow.
	Progress func(done, total uint64)

	// Penalty, if not nil, is called when a peer is given up for an offence. The
	// Network itself remembers it as well.
	Penalty func(peer key.Public, o Offence)
}

// Check returns an error unless the blob is within MaxBlob and the machine's memory
// addresses.
func (f Fetch) Check() error {
	if f.Ref.Size > MaxBlob || uint64(int(f.Ref.Size)) != f.Ref.Size {
		root := f.Ref.Root // so that f does not escape
		return fmt.Errorf("fetch blob %x: %w: %d bytes, and the limit is %d", root[:4], ErrTooLarge, f.Ref.Size, uint64(MaxBlob))
	}
	return nil
}

// FetchError reports why a blob could not be fetched. It holds the part that was
// verified until it is dropped.
type FetchError struct {
	Ref  Ref
	Err  error // what ended the fetch: ErrNoPeers, ErrWrongSize, ErrClosed or the context's error
	Held uint32
	// Troubles are the faults of the first troublesMax peers that were given up.
	Troubles []PeerError

	leaves []wire.Hash
	held   []bool
	data   []byte
}

// PeerError is why a peer was given up. It is one of the package's errors, or the
// network's own.
type PeerError struct {
	Peer key.Public
	Err  error
}

// troublesMax bounds the text of an error.
const troublesMax = 8

func (e *PeerError) Error() string {
	return fmt.Sprintf("peer %x: %v", e.Peer[:4], e.Err)
}

// Unwrap is the error without the peer.
func (e *PeerError) Unwrap() error { return e.Err }

func (e *FetchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fetch blob %x of %d bytes: %v, with %d of %d chunks held",
		e.Ref.Root[:4], e.Ref.Size, e.Err, e.Held, e.Ref.Chunks())
	for _, t := range e.Troubles {
		fmt.Fprintf(&b, "; %v", &t)
	}
	return b.String()
}

// Unwrap is what ended the fetch and what became of the peers.
func (e *FetchError) Unwrap() []error {
	errs := []error{e.Err}
	for i := range e.Troubles {
		errs = append(errs, &e.Troubles[i])
	}
	return errs
}

// Leaves is the verified leaf list, or nil; it is a Fetch.Leaves for another try.
func (e *FetchError) Leaves() []wire.Hash { return e.leaves }

// Chunk is the verified chunk i, or nil; it is a Fetch.Have for another try.
func (e *FetchError) Chunk(i uint32, _ wire.Hash) []byte {
	if e.data == nil || int(i) >= len(e.held) || !e.held[i] {
		return nil
	}
	from := int(i) * merkle.ChunkBytes
	n := e.Ref.chunkLen(i)
	return e.data[from : from+n : from+n]
}

// A Request is one question to one peer within a fetch.
type Request struct {
	To   key.Public
	Ref  Ref
	From uint32
	// Count is the number of chunks requested, or 0 for the leaf list or its part that begins at
	// From.
	Count uint32

	id     uint64
	leaves []wire.Hash // of the whole blob
}

// A Chunk is a chunk that has been verified. Only [Request.Verify] makes one.
type Chunk struct {
	root  wire.Hash
	index uint32
	data  []byte
}

// whole returns the chunk as a blob of one chunk: the memory that it came in, if that has no
// room to spare, otherwise a copy.
func (c Chunk) whole() []byte {
	if c.data != nil && cap(c.data) == len(c.data) {
		return c.data
	}
	return append(make([]byte, 0, len(c.data)), c.data...)
}

// Verify checks the next chunk of an answer, the i-th of the blob, of which it keeps data. That
// may become the blob, if it has one chunk. The error is ErrLied if data is not what its leaf
// says, and ErrWrongSize if it is but cannot be part of a blob of the reference's length: then
// the reference is false, and its author to blame. It may be called from any goroutine.
func (r Request) Verify(i uint32, data []byte) (Chunk, error) {
	if i < r.From || i-r.From >= r.Count {
		panic("p2p: chunk outside the request")
	}
	if len(data) > merkle.ChunkBytes || merkle.Leaf(data) != r.leaves[i] {
		return Chunk{}, ErrLied
	}
	if len(data) != r.Ref.chunkLen(i) {
		return Chunk{}, ErrWrongSize
	}
	return Chunk{root: r.Ref.Root, index: i, data: data}, nil
}
