package trace

import (
	"unsafe"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

const (
	// Side is the side of a tile: matrices are cut into tiles of Side by Side floats, 4 KiB,
	// smaller at the edges.
	Side = 32
	// ReadsMax is the most tiles a slice reads.
	ReadsMax = 8
	// ChunkWords is the number of words in a chunk of parameters or state (merkle.ChunkBytes).
	ChunkWords = 1 << 16
)

// Source is where an input of a slice comes from.
type Source uint8

// The sources.
const (
	Value  Source = iota // tile Index of the value of an earlier operation, Op
	Params               // chunk Index of the parameters at the round's start; the last may be short
	State                // chunk Index of the optimizer state before the step
	Tokens               // sequence Index of the share, one token a word
	Base                 // chunk Index of the frozen model's parameters, in a run of adapters
)

// Read names an input of a slice. Op is 0 unless Source is Value.
type Read struct {
	Source Source
	Op     uint32
	Index  uint32
}

// An Op is an operation. It defines how each slice of each tile of its value is made, and is safe
// for concurrent use.
type Op interface {
	// Name describes the value for people: "sequence 5, layer 3, attention scores of head 2".
	Name() string
	// Tiles returns the number of tiles of the value, at least one.
	Tiles() uint32
	// Slices returns the number of steps in which a tile is made, at least one.
	Slices(tile uint32) uint32
	// Words returns the number of words of a tile after the given slice.
	Words(tile, slice uint32) int
	// Reads lists what the slice reads besides the words of the tile so far: at most ReadsMax
	// inputs, always the same, values only of earlier operations. A slice that reads parameters or
	// state reads one chunk, because a chunk alone fills most of a message.
	Reads(tile, slice uint32) []Read
	// Step returns the words of the tile after this slice. acc holds the words after the previous
	// slice, nil at slice 0; Step may change and return it. in holds the words that Reads lists, in
	// that order, and must not be changed. All have the lengths that Words returns. Step is total:
	// for any words it returns Words(tile, slice) words and does not panic. It depends only on its
	// arguments and has the same bits for every kernel of w on every machine: a NaN is always the
	// canonical one (see Canonical).
	//
	// Step is the only definition of the operation, used both for tracing and by the referee.
	Step(w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32
}

// Leafer is an Op whose slices are not hashed by bisect.Leaf. Only the last operation is one: its
// hash is the outcome that was committed to.
type Leafer interface {
	Op
	// Leaf returns the hash of the words of a slice.
	Leaf(words []uint32) wire.Hash
}

// Program is a list of operations. The value of the last one is the outcome.
type Program interface {
	Len() uint32
	Op(t uint32) Op // t < Len
}

// Tail is the part of a program that follows the gradient: the codec's computation.
type Tail interface {
	Len() uint32
	// Op returns operation t of the tail, which is operation base + t of the program. gradient
	// returns the operation that holds the gradient of tensor i of the layout, before clipping: a
	// matrix of the tensor's last two dimensions (a vector has one row), cut as in Matrix.
	Op(t, base uint32, gradient func(tensor int) uint32) Op
}

// Sources are a program's external inputs.
type Sources struct {
	Params []float32                        // parameters at the round's start
	State  []float32                        // optimizer state before the step
	Base   []float32                        // parameters of the frozen model, in a run of adapters
	Tokens func(i uint32) ([]uint32, error) // sequence i of the share
	// Prove returns the evidence from which the referee's Opener obtains the words of a read whose
	// source is not Value. It may be nil if nothing needs proof.
	Prove func(r Read) ([]byte, error)
}

// Opener is the referee's counterpart of Sources.Prove: it returns the words of a read whose source
// is not Value if the evidence proves them.
type Opener interface {
	Open(r Read, evidence []byte) ([]uint32, error)
}

// Matrix is the shape of a matrix, cut into tiles of Side by Side that are numbered row by row.
// Tiles are row-major.
type Matrix struct{ Rows, Cols int }

// matrixOf returns the matrix for a tensor's shape: a vector is one row.
func matrixOf(shape []int) Matrix {
	m := Matrix{1, 1}
	for i, n := range shape {
		if i == len(shape)-1 {
			m.Cols = n
		} else {
			m.Rows *= n
		}
	}
	return m
}

// Down and Across return the number of tiles in each direction.
func (m Matrix) Down() int   { return (m.Rows + Side - 1) / Side }
func (m Matrix) Across() int { return (m.Cols + Side - 1) / Side }

// Tiles returns the number of tiles.
func (m Matrix) Tiles() uint32 { return uint32(m.Down() * m.Across()) }

// bounds returns the rows and columns that a tile holds: [r0, r1) and [c0, c1).
func (m Matrix) bounds(tile uint32) (r0, r1, c0, c1 int) {
	r0, c0 = int(tile)/m.Across()*Side, int(tile)%m.Across()*Side
	return r0, min(r0+Side, m.Rows), c0, min(c0+Side, m.Cols)
}

// Words returns the number of words of a tile.
func (m Matrix) Words(tile uint32) int {
	r0, r1, c0, c1 := m.bounds(tile)
	return (r1 - r0) * (c1 - c0)
}

// Floats views words as the floats with those bits.
func Floats(words []uint32) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

// Bits views floats as words.
func Bits(floats []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(floats))), len(floats))
}

// canonical replaces each NaN among words, which are floats, by the one with the bits 0x7fc00000,
// and returns words. Processors differ in the NaN that an operation returns, and two honest parties
// must agree.
func canonical(words []uint32) []uint32 {
	for i, b := range words {
		if b&0x7fffffff > 0x7f800000 {
			words[i] = 0x7fc00000
		}
	}
	return words
}

// leaf returns the hash of the words after a slice.
func leaf(op Op, words []uint32) wire.Hash {
	if l, ok := op.(Leafer); ok {
		return l.Leaf(words)
	}
	// This is bisect.Leaf without copying the words: a trace hashes thousands of times the bytes of
	// the model's weights.
	return wire.Sum("entrain/words", tensor.Bytes(Floats(words)))
}
