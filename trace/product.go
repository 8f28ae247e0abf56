package trace

import (
	"github.com/entrain-network/entrain/exact"
)

// A kernel is an operation that does not know its place in the program.
type kernel interface {
	tiles() uint32
	slices(tile uint32) uint32
	words(tile, slice uint32) int
	reads(at spot, tile, slice uint32) []Read
	step(at spot, w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32
	code(c *coder)
}

// pairsPerSlice is the number of pairs of tiles that a slice multiplies. With the start of the
// chain they are 7 reads.
const pairsPerSlice = 3

// inner selects the inner tiles over which an element's chain runs.
type inner uint8

const (
	allTiles inner = iota // all tiles
	upToRow               // the keys that the row's block of queries attends to
	fromRow               // the queries whose blocks attend to the row's key
)

// product is C = A·B, or C = start + A·B. Each element is a chain as in exact.Gemm. A slice adds
// pairsPerSlice inner tiles.
type product struct {
	out   grid
	a, b  operand
	depth int // number of inner tiles
	inner inner
	start ref  // a value with the shape of out, or none
	eight bool // as exact8.Gemm instead: an inner tile is one of its blocks
}

// chain returns the inner tiles [from, to) over which the chains of row r of tiles run.
func (p *product) chain(r int) (from, to int) {
	switch p.inner {
	case upToRow:
		return 0, reach(r, p.depth)
	case fromRow:
		return r &^ 1, p.depth
	}
	return 0, p.depth
}

// cut returns the inner tiles of a slice.
func (p *product) cut(r int, slice uint32) (from, to int) {
	from, to = p.chain(r)
	from += int(slice) * pairsPerSlice
	return from, min(from+pairsPerSlice, to)
}

func (p *product) tiles() uint32 { return p.out.tiles() }

func (p *product) slices(tile uint32) uint32 {
	r, _ := p.out.place(tile)
	from, to := p.chain(r)
	return uint32((to - from + pairsPerSlice - 1) / pairsPerSlice)
}

func (p *product) words(tile, _ uint32) int { return p.out.words(tile) }

func (p *product) reads(at spot, tile, slice uint32) []Read {
	reads := make([]Read, 0, ReadsMax)
	if slice == 0 && at.has(p.start) {
		reads = append(reads, at.read(p.start, tile))
	}
	r, c := p.out.place(tile)
	from, to := p.cut(r, slice)
	for k := from; k < to; k++ {
		reads = append(reads, p.a.block(at, r, k).read, p.b.block(at, k, c).read)
	}
	return reads
}

func (p *product) step(at spot, w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	r, c := p.out.place(tile)
	if slice == 0 {
		acc = make([]uint32, p.out.words(tile))
		if at.has(p.start) {
			copy(acc, in[0])
			in = in[1:]
		}
	}
	from, to := p.cut(r, slice)
	rows, cols := p.out.size(r, c)
	each := 1
	if p.eight {
		each = rowsOfEight
	}
	w.Rows(Floats(acc), rows, each, func(i, j int) {
		rest, sum := in, Floats(acc)[i*cols:j*cols]
		for k := from; k < to; k++ {
			a, b := p.a.block(at, r, k), p.b.block(at, k, c)
			multiply(w, p.eight, j-i, a, Floats(rest[0])[i*a.rowStep:], b, Floats(rest[1]), sum)
			rest = rest[2:]
		}
	})
	return acc
}

// rowsOfEight is how many rows of a tile a worker with a log computes at a time in 8 bits: each
// time takes the quanta of the whole right tile.
const rowsOfEight = 8
