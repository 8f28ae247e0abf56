package trace

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// EvidenceBytesMax is the most evidence a coordinator accepts. A chunk of parameters with its proof
// fits, and so do the two chunks of a shard that a sequence may span.
const EvidenceBytesMax = coordinator.EvidenceBytesMax

// ErrEvidence is wrapped by the errors of Judge: the bytes prove nothing.
var ErrEvidence = errors.New("no evidence")

// appendWords appends words, little endian.
func appendWords(dst []byte, words []uint32) []byte {
	for _, w := range words {
		dst = wire.AppendU32(dst, w)
	}
	return dst
}

// appendPath appends the path from the hash of a slice to the root of a trace: the proof that it is
// under its tile, the tile's leaf and the proof that it is under its operation, the operation's
// leaf and the proof that it is under the root.
func appendPath(dst []byte, slice, tiles []wire.Hash, tile uint32, ops []wire.Hash, op uint32) []byte {
	dst = appendHashes(dst, slice)
	dst = appendHashes(wire.AppendHash(dst, tiles[tile]), bisect.Prove(tiles, tile))
	return appendHashes(wire.AppendHash(dst, ops[op]), bisect.Prove(ops, op))
}

func appendHashes(dst []byte, hashes []wire.Hash) []byte {
	for _, h := range hashes {
		dst = wire.AppendHash(dst, h)
	}
	return dst
}

// Judge computes slice number slice of a tile of an operation of p and returns the hash of its true
// words, bisect.Leaf unless the operation is a Leafer. The evidence must prove the words that the
// slice continues from and reads: they are under the root trace, which a party claims, or, for
// external inputs, open accepts them. Any error wraps ErrEvidence and means that the evidence
// proves nothing.
//
// Judge computes in plain Go, which is the definition. It depends only on its arguments, on every
// machine, and takes a bounded time.
func Judge(p Program, open Opener, op, tile, slice uint32, trace wire.Hash, evidence []byte) (wire.Hash, error) {
	if op >= p.Len() || len(evidence) > EvidenceBytesMax {
		return wire.Hash{}, fmt.Errorf("%w: %d bytes for operation %d of %d", ErrEvidence, len(evidence), op, p.Len())
	}
	o := p.Op(op)
	if tile >= o.Tiles() || slice >= o.Slices(tile) {
		return wire.Hash{}, fmt.Errorf("%w: operation %d has no slice %d of tile %d", ErrEvidence, op, slice, tile)
	}
	e := proof{p: p, root: trace, r: wire.NewReader(evidence)}
	var acc []uint32
	if slice > 0 {
		acc = e.words(o, op, tile, slice-1)
	}
	reads := o.Reads(tile, slice)
	in := make([][]uint32, 0, len(reads))
	for _, r := range reads {
		if r.Source != Value {
			words, err := e.outside(open, r)
			if err != nil {
				return wire.Hash{}, err
			}
			in = append(in, words)
			continue
		}
		u := p.Op(r.Op)
		in = append(in, e.words(u, r.Op, r.Index, u.Slices(r.Index)-1))
	}
	if e.r.Done(); e.r.Err() != wire.OK {
		return wire.Hash{}, fmt.Errorf("%w: operation %d: %w", ErrEvidence, op, e.r.Err())
	}
	if e.wrong != "" {
		return wire.Hash{}, fmt.Errorf("%w: operation %d: %s", ErrEvidence, op, e.wrong)
	}
	kernels := exact.Kernels() // the last is plain Go, which is the definition
	return leaf(o, o.Step(exact.NewWorker(kernels[len(kernels)-1]), tile, slice, acc, in)), nil
}

// proof reads evidence.
type proof struct {
	p     Program
	root  wire.Hash
	r     wire.Reader
	wrong string // the first part found not to be under the root
}

// words reads the words of a tile of operation t after a slice, and checks that they are under the
// root.
func (e *proof) words(o Op, t, tile, slice uint32) []uint32 {
	n := o.Words(tile, slice)
	if e.r.Len() < 4*n {
		e.r.Fail(wire.ErrShort)
		return nil
	}
	words := make([]uint32, n)
	for i := range words {
		words[i] = e.r.U32()
	}
	slices, tiles, ops := o.Slices(tile), o.Tiles(), e.p.Len()
	sliceProof := e.hashes(slices)
	tileLeaf := e.r.Hash()
	tileProof := e.hashes(tiles)
	opLeaf := e.r.Hash()
	opProof := e.hashes(ops)
	if e.r.Err() != wire.OK {
		return nil
	}
	if !bisect.Check(tileLeaf, leaf(o, words), slice, slices, sliceProof) || !bisect.Check(opLeaf, tileLeaf, tile, tiles, tileProof) ||
		!bisect.Check(e.root, opLeaf, t, ops, opProof) {
		if e.wrong == "" {
			e.wrong = fmt.Sprintf("tile %d of operation %d, %s, is not under the root", tile, t, o.Name())
		}
	}
	return words
}

// hashes reads the proof for a tree of n leaves.
func (e *proof) hashes(n uint32) []wire.Hash {
	hashes := make([]wire.Hash, 4*int(bisect.Depth(n)))
	for i := range hashes {
		hashes[i] = e.r.Hash()
	}
	return hashes
}

// outside reads the proof of an external input.
func (e *proof) outside(open Opener, r Read) ([]uint32, error) {
	evidence := e.r.Var(EvidenceBytesMax)
	if e.r.Err() != wire.OK {
		return nil, fmt.Errorf("%w: %w", ErrEvidence, e.r.Err())
	}
	words, err := open.Open(r, evidence)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEvidence, err)
	}
	return words, nil
}

// ProveChunk proves a chunk of a blob of floats with the given leaves (merkle.BlobLeaves): it
// returns the chunk's bytes, then the proof that it is under the blob's root.
func ProveChunk(blob []float32, leaves []wire.Hash, i uint32) []byte {
	return appendHashes(appendWords(nil, chunk(blob, i)), merkle.Prove(leaves, uint64(i)))
}

// OpenChunk returns the words of chunk i of a blob with the given number of floats from the bytes
// that ProveChunk made, if they are under the root.
func OpenChunk(root wire.Hash, floats int, i uint32, evidence []byte) ([]uint32, error) {
	size := 4 * uint64(floats)
	if uint64(i) >= merkle.BlobChunks(size) {
		return nil, fmt.Errorf("no chunk %d in a blob of %d bytes", i, size)
	}
	from, to := merkle.Chunk(size, uint64(i))
	r := wire.NewReader(evidence)
	bytes := r.Bytes(int(to - from))
	siblings := make([]wire.Hash, 0, 64)
	for r.Len() > 0 && len(siblings) < cap(siblings) {
		siblings = append(siblings, r.Hash())
	}
	if err := r.Done().OrNil(); err != nil {
		return nil, fmt.Errorf("chunk %d: %w", i, err)
	}
	if !merkle.Check(root, merkle.Leaf(bytes), uint64(i), merkle.BlobChunks(size), siblings) {
		return nil, fmt.Errorf("chunk %d is not under the blob's hash", i)
	}
	words := make([]uint32, len(bytes)/4)
	b := wire.NewReader(bytes)
	for k := range words {
		words[k] = b.U32()
	}
	return words, nil
}
