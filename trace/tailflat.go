package trace

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// flat reads the tiles of a layout's tensors in the order of the flat slice. It reads pieces of
// tensors that touch at most ReadsMax tiles each: runs of pieceCols columns in a row if the tensor
// is at least ReadsMax tiles wide, and strips of rows if it is narrower.
type flat struct {
	tensors []flatTensor
	n       int // elements
	pieces  int
}

type flatTensor struct {
	Matrix
	offset int // of its first element in the flat slice
	first  int // its first piece
	across int // pieces in a row; 0 if pieces are strips
	strip  int // elements in a strip
}

// pieceCols is the number of columns of a piece of a wide tensor.
const pieceCols = ReadsMax * Side

func newFlat(layout tensor.Layout) (f flat) {
	for _, t := range layout.Tensors() {
		f.add(matrixOf(t.Shape), t.Offset)
	}
	return f
}

// add adds a tensor, which follows those before.
func (f *flat) add(m Matrix, offset int) {
	x := flatTensor{Matrix: m, offset: offset, first: f.pieces}
	if x.Across() < ReadsMax {
		rows := ReadsMax / x.Across() * Side
		x.strip = rows * x.Cols
		f.pieces += (x.Rows + rows - 1) / rows
	} else {
		x.across = (x.Cols + pieceCols - 1) / pieceCols
		f.pieces += x.Rows * x.across
	}
	f.tensors = append(f.tensors, x)
	f.n += m.Rows * m.Cols
}

// tensorAt returns the number of the tensor that holds an element.
func (f flat) tensorAt(element int) int {
	i, found := slices.BinarySearchFunc(f.tensors, element, func(t flatTensor, e int) int { return t.offset - e })
	if !found {
		i--
	}
	return i
}

// pieceAt returns the number of the piece that holds an element.
func (f flat) pieceAt(element int) int {
	t := f.tensors[f.tensorAt(element)]
	at := element - t.offset
	if t.across == 0 {
		return t.first + at/t.strip
	}
	return t.first + at/t.Cols*t.across + at%t.Cols/pieceCols
}

// run is a part of a piece: elements [from, to) of a tensor's matrix.
type run struct {
	tensor   int
	m        Matrix
	from, to int
}

// piece returns all elements of a piece.
func (f flat) piece(number int) run {
	i, found := slices.BinarySearchFunc(f.tensors, number, func(t flatTensor, n int) int { return t.first - n })
	if !found {
		i--
	}
	t := f.tensors[i]
	number -= t.first
	if t.across == 0 {
		return run{i, t.Matrix, number * t.strip, min((number+1)*t.strip, t.Rows*t.Cols)}
	}
	row, from := number/t.across, number%t.across*pieceCols
	return run{i, t.Matrix, row*t.Cols + from, row*t.Cols + min(from+pieceCols, t.Cols)}
}

// segment returns the elements of segment i, for segments of size elements.
func (f flat) segment(size int, i uint32) (from, to int) {
	return int(i) * size, min((int(i)+1)*size, f.n)
}

// slices returns the number of pieces, or parts of pieces, in a segment.
func (f flat) slices(size int, i uint32) uint32 {
	from, to := f.segment(size, i)
	return uint32(f.pieceAt(to-1) - f.pieceAt(from) + 1)
}

// part returns a segment's part that one slice reads.
func (f flat) part(size int, i, slice uint32) run {
	from, to := f.segment(size, i)
	r := f.piece(f.pieceAt(from) + int(slice))
	offset := f.tensors[r.tensor].offset
	r.from, r.to = max(r.from, from-offset), min(r.to, to-offset)
	return r
}

// box returns the rows [r0, r1] and columns [c0, c1] of tiles that a run touches.
func (r run) box() (r0, r1, c0, c1 int) {
	first, last := r.from/r.m.Cols, (r.to-1)/r.m.Cols
	c0, c1 = 0, r.m.Across()-1
	if first == last {
		c0, c1 = r.from%r.m.Cols/Side, (r.to-1)%r.m.Cols/Side
	}
	return first / Side, last / Side, c0, c1
}

// reads returns the reads of the tiles of operation op that hold the run.
func (r run) reads(op uint32) []Read {
	r0, r1, c0, c1 := r.box()
	reads := make([]Read, 0, (r1-r0+1)*(c1-c0+1))
	for i := r0; i <= r1; i++ {
		for j := c0; j <= c1; j++ {
			reads = append(reads, Read{Source: Value, Op: op, Index: uint32(i*r.m.Across() + j)})
		}
	}
	return reads
}

// words returns the elements of the run, in order, from the tiles that reads lists.
func (r run) words(in [][]uint32) []uint32 {
	r0, _, c0, c1 := r.box()
	out := make([]uint32, 0, r.to-r.from)
	for at := r.from; at < r.to; {
		row, col := at/r.m.Cols, at%r.m.Cols
		tile := (row/Side-r0)*(c1-c0+1) + col/Side - c0
		left := col / Side * Side
		width := min(Side, r.m.Cols-left)
		n := min(left+width-col, r.to-at)
		from := row%Side*width + col - left
		out = append(out, in[tile][from:from+n]...)
		at += n
	}
	return out
}

// gradientBytes is the gradient as a blob.
type gradientBytes struct {
	flat flat
	at   tailSite
}

func (g gradientBytes) slices(chunk uint32) uint32 { return g.flat.slices(ChunkWords, chunk) }

func (g gradientBytes) reads(chunk, slice uint32) []Read {
	r := g.flat.part(ChunkWords, chunk, slice)
	return r.reads(g.at.gradient(r.tensor))
}

func (g gradientBytes) bytes(chunk, slice uint32, in [][]uint32) []byte {
	return littleEndian(g.flat.part(ChunkWords, chunk, slice).words(in))
}

// littleEndian returns the bytes of words.
func littleEndian(words []uint32) []byte {
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// norm adds the operations that sum the gradient's squares as codec.Norm does: 16 partial sums of
// each segment, their sum, and the sum of the segments. Numbers are binary64, two words each, the
// lower first.
func (d *codecTail) norm() uint32 {
	f := d.flat
	segments := uint32((f.n + codec.NormSegment - 1) / codec.NormSegment)
	var sums codec.Squares
	last := func(tile, slice uint32) bool { return slice+1 == f.slices(codec.NormSegment, tile) }
	of := d.add(func(at tailSite) Op {
		return funcOp{
			name: "squares of the gradient", tiles: segments,
			slices: func(tile uint32) uint32 { return f.slices(codec.NormSegment, tile) },
			words: func(tile, slice uint32) int {
				if last(tile, slice) {
					return 2
				}
				return 2 * len(sums)
			},
			reads: func(tile, slice uint32) []Read {
				r := f.part(codec.NormSegment, tile, slice)
				return r.reads(at.gradient(r.tensor))
			},
			step: func(_ *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
				r := f.part(codec.NormSegment, tile, slice)
				from, _ := f.segment(codec.NormSegment, tile)
				var s codec.Squares
				if slice > 0 {
					setDoubles(s[:], acc)
				}
				s.Add(f.tensors[r.tensor].offset+r.from-from, Floats(r.words(in)))
				if last(tile, slice) {
					return doubles(s.Sum())
				}
				return doubles(s[:]...)
			},
		}
	})
	return d.add(func(at tailSite) Op {
		return chain(at, "sum of the squares", 2, of, segments, func(acc []uint32, in [][]uint32) []uint32 {
			var sum, v [1]float64
			setDoubles(sum[:], acc)
			for _, words := range in {
				setDoubles(v[:], words)
				sum[0] += v[0]
			}
			return doubles(sum[0])
		})
	})
}

// doubles returns the words of binary64 numbers, with a canonical NaN.
func doubles(v ...float64) []uint32 {
	w := make([]uint32, 0, 2*len(v))
	for _, x := range v {
		b := math.Float64bits(x)
		if x != x {
			b = 0x7ff8 << 48
		}
		w = append(w, uint32(b), uint32(b>>32))
	}
	return w
}

// setDoubles is the inverse of doubles.
func setDoubles(v []float64, words []uint32) {
	for i := range v {
		v[i] = math.Float64frombits(uint64(words[2*i]) | uint64(words[2*i+1])<<32)
	}
}
