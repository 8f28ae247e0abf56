package trace

import (
	"unsafe"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

const (
	// Side is the side of a tile: matrices are cut in tiles of Side by Side floats, 4 KiB, smaller
	// at the edges.
	Side = 32
	// ReadsMax is how many tiles a slice reads at most.
	ReadsMax = 8
	// ChunkWords is the number of words in a chunk of parameters or state (merkle.ChunkBytes).
	ChunkWords = 1 << 16
)

// Source says where what a slice reads comes from.
type Source uint8

// The sources.
const (
	Value  Source = iota // tile Index of the value of operation Op, which comes before the one that reads it
	Params               // chunk Index of the parameters at the round's start: ChunkWords words, fewer in the last one
	State                // chunk Index of the optimizer state before the step
	Tokens               // sequence Index of the share, one token a word
)

// Read names what a slice reads. Op is 0 unless Source is Value.
type Read struct {
	Source Source
	Op     uint32
	Index  uint32
}

// Op is an operation: how each slice of each tile of its value is made. It may be used by several
// goroutines at once.
type Op interface {
	// Name says what the value is, for people: "sequence 5, layer 3, attention scores of head 2".
	Name() string
	// Tiles is the number of tiles of the value, at least one.
	Tiles() uint32
	// Slices is the number of steps in which a tile is made, at least one.
	Slices(tile uint32) uint32
	// Words is the number of words a tile has after that slice.
	Words(tile, slice uint32) int
	// Reads lists what the slice reads beside the words of the tile so far: at most ReadsMax,
	// values of earlier operations only, and always the same. A slice that reads parameters or
	// state reads one chunk, because that alone fills most of a message.
	Reads(tile, slice uint32) []Read
	// Step returns the words of the tile after this slice. acc are those after the slice before,
	// nil at slice 0: they are Step's to change and to return. in are the words of what Reads
	// lists, in that order, not to be changed; all have the lengths that Words says. Step is total:
	// whatever the words, it returns Words(tile, slice) words and does not panic. It is a function
	// of its arguments alone, with the same bits for every kernel of w on every machine: a NaN is
	// always the canonical one (see Canonical).
	//
	// It is the one definition of the operation, for those who trace and for the referee.
	Step(w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32
}

// Leafer is an Op whose slices have another hash than bisect.Leaf: the last one, whose hash is the
// outcome that was committed to.
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

// Tail is the part of a program that follows the gradient: what a codec makes of it.
type Tail interface {
	Len() uint32
	// Op returns operation number t of the tail, which is number base + t of the program. gradient
	// gives the operation which holds the gradient of tensor i of the layout, before clipping: a
	// matrix of the tensor's last two dimensions (a vector has one row), cut as Matrix says.
	Op(t, base uint32, gradient func(tensor int) uint32) Op
}

// Sources are what a program reads from outside.
type Sources struct {
	Params []float32                        // at the round's start
	State  []float32                        // the optimizer's, before the step
	Tokens func(i uint32) ([]uint32, error) // sequence i of the share
	// Prove returns the evidence from which the referee's Opener makes the words of a read whose
	// source is not Value. It may be nil in who proves nothing.
	Prove func(r Read) ([]byte, error)
}

// Opener is the referee's side of Sources.Prove: it returns the words of a read whose source is not
// Value if the evidence proves them.
type Opener interface {
	Open(r Read, evidence []byte) ([]uint32, error)
}

// Matrix is the shape of a value that is a matrix, cut in tiles of Side by Side numbered row by
// row, each row-major.
type Matrix struct{ Rows, Cols int }

// MatrixOf is the matrix of a tensor of that shape: a vector is one row.
func MatrixOf(shape []int) Matrix {
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

// Down and Across are the numbers of tiles in each direction.
func (m Matrix) Down() int   { return (m.Rows + Side - 1) / Side }
func (m Matrix) Across() int { return (m.Cols + Side - 1) / Side }

// Tiles is the number of tiles.
func (m Matrix) Tiles() uint32 { return uint32(m.Down() * m.Across()) }

// Tile is the number of the tile that holds an element.
func (m Matrix) Tile(row, col int) uint32 { return uint32(row/Side*m.Across() + col/Side) }

// Bounds returns the rows and columns that a tile holds: [r0, r1) and [c0, c1).
func (m Matrix) Bounds(tile uint32) (r0, r1, c0, c1 int) {
	r0, c0 = int(tile)/m.Across()*Side, int(tile)%m.Across()*Side
	return r0, min(r0+Side, m.Rows), c0, min(c0+Side, m.Cols)
}

// Words is the number of words of a tile.
func (m Matrix) Words(tile uint32) int {
	r0, r1, c0, c1 := m.Bounds(tile)
	return (r1 - r0) * (c1 - c0)
}

// Floats views words as the floats whose bits they are.
func Floats(words []uint32) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

// Bits views floats as words.
func Bits(floats []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(floats))), len(floats))
}

// Canonical makes each NaN among words, which are floats, the one with the bits 0x7fc00000, and
// returns words. Processors differ in which NaN an operation gives, and two honest parties must
// not.
func Canonical(words []uint32) []uint32 {
	for i, b := range words {
		if b&0x7fffffff > 0x7f800000 {
			words[i] = 0x7fc00000
		}
	}
	return words
}

// leaf is the hash of the words after a slice.
func leaf(op Op, words []uint32) wire.Hash {
	if l, ok := op.(Leafer); ok {
		return l.Leaf(words)
	}
	// bisect.Leaf, without copying the words: who traces hashes more bytes than the model has
	// weights, thousands of times.
	return wire.Sum("entrain/words", tensor.Bytes(Floats(words)))
}
