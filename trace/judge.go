package trace

import (
	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// evidenceBytesMax is the most evidence a coordinator accepts. A chunk of parameters with its proof
// fits, and so do the two chunks of a shard that a sequence may span.
const evidenceBytesMax = coordinator.EvidenceBytesMax

// Unproven is why evidence proves nothing.
type Unproven struct {
	What     string
	Op, Tile uint32 // what What is about
	Err      error  // instead, if not nil
}

// JudgeOn is Judge on a worker. With exact.Progress it may have to be called again: its result
// counts unless that says that it stopped.
func JudgeOn(w *exact.Worker, p Program, open Opener, op, tile, slice uint32, trace wire.Hash, evidence []byte) (wire.Hash, *Unproven) {
	if op >= p.Len() || len(evidence) > evidenceBytesMax {
		return wire.Hash{}, &Unproven{What: "the program has no such operation, or the evidence is too long", Op: op}
	}
	o := p.Op(op)
	if tile >= o.Tiles() || slice >= o.Slices(tile) {
		return wire.Hash{}, &Unproven{What: "there is no such slice", Op: op, Tile: tile}
	}
	e := proof{p: p, root: trace, r: wire.NewReader(evidence)}
	var acc []uint32
	if slice > 0 {
		acc = append([]uint32{}, e.words(o, op, tile, slice-1)...) // Step may change it
	}
	reads := o.Reads(tile, slice)
	in := make([][]uint32, 0, len(reads))
	for _, r := range reads {
		if r.Source != Value {
			in = append(in, e.outside(open, r))
			continue
		}
		u := p.Op(r.Op)
		in = append(in, e.words(u, r.Op, r.Index, u.Slices(r.Index)-1))
	}
	if err := e.r.Done(); err != wire.OK && e.wrong == nil {
		e.wrong = &Unproven{Err: err}
	}
	if e.wrong != nil {
		return wire.Hash{}, e.wrong
	}
	return leaf(o, o.Step(w, tile, slice, acc, in)), nil
}

// proof reads evidence.
type proof struct {
	p     Program
	root  wire.Hash
	r     wire.Reader
	wrong *Unproven // the first part found to prove nothing
}

// words reads the words of a tile of operation t after a slice, and checks that they are under the
// root.
func (e *proof) words(o Op, t, tile, slice uint32) []uint32 {
	n := o.Words(tile, slice)
	if e.r.Len() < 4*n {
		e.r.Fail(wire.ErrShort)
		return nil
	}
	words := Words(e.r.Bytes(4 * n))
	slices, tiles, ops := o.Slices(tile), o.Tiles(), e.p.Len()
	sliceProof := e.hashes(slices)
	tileLeaf := e.r.Hash()
	tileProof := e.hashes(tiles)
	opLeaf := e.r.Hash()
	opProof := e.hashes(ops)
	if e.r.Err() != wire.OK {
		return nil
	}
	if e.wrong == nil && (!bisect.Check(tileLeaf, leaf(o, words), slice, slices, sliceProof) || !bisect.Check(opLeaf, tileLeaf, tile, tiles, tileProof) ||
		!bisect.Check(e.root, opLeaf, t, ops, opProof)) {
		e.wrong = &Unproven{What: "this is not under the root", Op: t, Tile: tile}
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
func (e *proof) outside(open Opener, r Read) []uint32 {
	evidence := e.r.Var(evidenceBytesMax)
	if e.wrong != nil || e.r.Err() != wire.OK {
		return nil
	}
	words, err := open.Open(r, evidence)
	if err != nil {
		e.wrong = &Unproven{Err: err}
	}
	return words
}

// chunkError is why a chunk of a blob is not proven.
type chunkError string

func (e chunkError) Error() string { return string(e) }

// OpenChunk returns the words of chunk i of a blob with the given number of floats from the bytes
// that ProveChunk made, if they are under the root.
func OpenChunk(root wire.Hash, floats int, i uint32, evidence []byte) ([]uint32, error) {
	size := 4 * uint64(floats)
	if uint64(i) >= merkle.BlobChunks(size) {
		return nil, chunkError("the blob has no such chunk")
	}
	from, to := merkle.Chunk(size, uint64(i))
	r := wire.NewReader(evidence)
	bytes := r.Bytes(int(to - from))
	siblings := make([]wire.Hash, 0, 64)
	for r.Len() > 0 && len(siblings) < cap(siblings) {
		siblings = append(siblings, r.Hash())
	}
	if err := r.Done().OrNil(); err != nil {
		return nil, err
	}
	if !merkle.Check(root, merkle.Leaf(bytes), uint64(i), merkle.BlobChunks(size), siblings) {
		return nil, chunkError("the chunk is not under the blob's hash")
	}
	return Words(bytes), nil
}

// ProgressWords is the most that a slice computes with exact.Progress.
const ProgressWords = 2 * Side * Side
