package trace

import (
	"math"

	"github.com/entrain-network/entrain/exact"
)

// lanes are the partial sums, or maxima, of a row: element i belongs to lane i mod 16 (package
// exact). Tiles begin at multiples of 32, so an element's lane is its offset in the tile mod 16.
type lanes [16]float32

func (l *lanes) fold() float32    { return exact.FoldSum((*[16]float32)(l)) }
func (l *lanes) foldMax() float32 { return exact.FoldMax((*[16]float32)(l)) }

// rowFunction is what a reduction computes from a row x, a row y and gains g. v is a number of the
// row that another operation made.
type rowFunction uint8

const (
	rms       rowFunction = iota // 1/√(Σx²/n + constant)
	normSlope                    // c of RMSNormBackward for dy = x, x = y, inv = v
	shift                        // max(x)·constant
	share                        // constant/ΣExp(x·scale - v), with a token's weight if constant is 0
	inProduct                    // Σx·y
)

// reduction reduces each row to one number: a vector, whose tiles hold Side rows. A slice adds
// columns of tiles to the lanes of the rows, 16 words each; the last slice makes the result. Rows
// of a causal grid end at the diagonal.
type reduction struct {
	function        rowFunction
	x, y            value // y for normSlope and inProduct
	gains           value // one row as wide as x
	rows            ref   // the vector of v
	constant, scale float32
}

// reading returns the number of tiles that a slice reads once, and for each column of tiles.
func (a *reduction) reading() (once, each int) {
	switch a.function {
	case normSlope:
		return 1, 3
	case share:
		return 1, 1
	case inProduct:
		return 0, 2
	}
	return 0, 1
}

// across returns the number of tiles in row r of tiles, up to the diagonal.
func (a *reduction) across(r int) int {
	if a.x.grid.causal {
		return r + 1
	}
	return a.x.grid.cols.tiles()
}

// cut returns the columns of tiles that a slice adds.
func (a *reduction) cut(tile, slice uint32) (from, to int) {
	once, each := a.reading()
	n := (ReadsMax - once) / each
	return int(slice) * n, min((int(slice)+1)*n, a.across(int(tile)))
}

func (a *reduction) tiles() uint32 { return uint32(a.x.grid.rows.tiles()) }

func (a *reduction) slices(tile uint32) uint32 {
	once, each := a.reading()
	n := (ReadsMax - once) / each
	return uint32((a.across(int(tile)) + n - 1) / n)
}

func (a *reduction) last(tile, slice uint32) bool { return slice+1 == a.slices(tile) }

func (a *reduction) words(tile, slice uint32) int {
	rows := a.x.grid.rows.width(int(tile))
	if a.last(tile, slice) {
		return rows
	}
	return len(lanes{}) * rows
}

func (a *reduction) reads(at spot, tile, slice uint32) []Read {
	reads := make([]Read, 0, ReadsMax)
	if once, _ := a.reading(); once > 0 {
		reads = append(reads, at.read(a.rows, tile))
	}
	from, to := a.cut(tile, slice)
	for c := from; c < to; c++ {
		reads = append(reads, at.tile(a.x, int(tile), c))
		if a.function == normSlope || a.function == inProduct {
			reads = append(reads, at.tile(a.y, int(tile), c))
		}
		if a.function == normSlope {
			reads = append(reads, at.tile(a.gains, 0, c))
		}
	}
	return reads
}

func (a *reduction) step(at spot, w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	r0, r1 := a.x.grid.rows.span(int(tile))
	sums := Floats(acc)
	if slice == 0 {
		sums = make([]float32, len(lanes{})*(r1-r0))
		for i := range sums {
			if a.function == shift {
				sums[i] = float32(math.Inf(-1))
			}
		}
	}
	once, each := a.reading()
	var own []float32
	if once > 0 {
		own, in = Floats(in[0]), in[1:]
	}
	from, to := a.cut(tile, slice)
	w.Rows(sums, r1-r0, 1, func(i, j int) {
		for c := from; c < to; c++ {
			a.add(sums, own, in[each*(c-from):], r0, i, j, c)
		}
	})
	if a.last(tile, slice) {
		return a.result(at, sums, own)
	}
	return Bits(sums)
}

// add adds rows [i, j) of column c of tiles to their lanes.
func (a *reduction) add(sums, own []float32, in [][]uint32, r0, i, j, c int) {
	width := a.x.grid.cols.width(c)
	for ; i < j; i++ {
		first, n := a.x.grid.seen(r0+i, c)
		if first == n {
			continue // the window begins in a later tile
		}
		row := func(tile int) []float32 { return Floats(in[tile])[i*width:][:n] }
		l := (*lanes)(sums[i*len(lanes{}):])
		switch a.function {
		case normSlope:
			l.products(row(0), Floats(in[2])[:n], row(1))
		case inProduct:
			l.product(first, row(0), row(1))
		case rms:
			l.product(first, row(0), row(0))
		case shift:
			l.greatest(first, row(0))
		case share:
			l.exp(first, row(0), a.scale, own[i])
		}
	}
}

// result makes the rows' numbers from their lanes.
func (a *reduction) result(at spot, sums, own []float32) []uint32 {
	n := float32(a.x.grid.cols.len())
	out := make([]float32, len(sums)/len(lanes{}))
	for i := range out {
		l := (*lanes)(sums[i*len(lanes{}):])
		switch a.function {
		case normSlope:
			out[i] = -(float32(float32(float32(l.fold()*own[i])*own[i])*own[i]) / n)
		case inProduct:
			out[i] = l.fold()
		case rms:
			out[i] = exact.Rsqrt(l.fold()/n + a.constant)
		case shift:
			out[i] = float32(l.foldMax() * a.constant)
		case share:
			numerator := a.constant
			if numerator == 0 {
				numerator = at.weight
			}
			out[i] = numerator / l.fold()
		}
	}
	return Bits(out)
}

func (l *lanes) product(first int, x, y []float32) {
	y = y[:len(x)]
	for i := first; i < len(x); i++ {
		l[i%16] += float32(x[i] * y[i])
	}
}

func (l *lanes) products(x, y, z []float32) {
	y, z = y[:len(x)], z[:len(x)]
	for i, v := range x {
		l[i%16] += float32(float32(v*y[i]) * z[i])
	}
}

func (l *lanes) greatest(first int, x []float32) {
	for i := first; i < len(x); i++ {
		if v := x[i]; v > l[i%16] {
			l[i%16] = v
		}
	}
}

func (l *lanes) exp(first int, x []float32, scale, shift float32) {
	for i := first; i < len(x); i++ {
		l[i%16] += exact.Exp(float32(x[i]*scale) - shift)
	}
}

// gain adds the gradient of a norm's gains to start: Σ(y·x)·inv over blocks of 64 tokens, each
// summed from +0, one slice a block and head. y holds the norm's inputs and x the gradients of its
// outputs, one of each a head that it normalizes.
type gain struct {
	x, y  []value
	inv   []ref
	out   grid // one row
	start ref
}

// blockTiles is the number of rows of tiles in one of llama's blocks.
const blockTiles = 64 / Side

func (g *gain) tiles() uint32            { return g.out.tiles() }
func (g *gain) words(tile, _ uint32) int { return g.out.words(tile) }
func (g *gain) slices(uint32) uint32 {
	return uint32(blocks(g.x[0].grid.rows) * len(g.x))
}

// blocks returns the number of llama's blocks in a dimension of tokens, and block64 the rows of
// tiles of one.
func blocks(tokens dim) int { return (tokens.tiles() + blockTiles - 1) / blockTiles }

func block64(tokens dim, i int) (from, to int) {
	return i * blockTiles, min((i+1)*blockTiles, tokens.tiles())
}

// cut returns the head and the rows of tiles of a slice.
func (g *gain) cut(slice uint32) (head, from, to int) {
	from, to = block64(g.x[0].grid.rows, int(slice)/len(g.x))
	return int(slice) % len(g.x), from, to
}

func (g *gain) reads(at spot, tile, slice uint32) []Read {
	reads := make([]Read, 0, ReadsMax)
	if slice == 0 && at.has(g.start) {
		reads = append(reads, at.read(g.start, tile))
	}
	h, from, to := g.cut(slice)
	for r := from; r < to; r++ {
		reads = append(reads, at.tile(g.x[h], r, int(tile)), at.tile(g.y[h], r, int(tile)), at.read(g.inv[h], uint32(r)))
	}
	return reads
}

func (g *gain) step(at spot, w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	n := g.out.words(tile)
	if slice == 0 {
		acc = make([]uint32, n)
		if at.has(g.start) {
			copy(acc, in[0])
			in = in[1:]
		}
	}
	sum := make([]float32, n)
	_, from, to := g.cut(slice)
	for r := from; r < to; r++ {
		x, y, inv := Floats(in[0]), Floats(in[1]), Floats(in[2])
		for i, v := range inv {
			for j := range sum {
				sum[j] += float32(float32(y[i*n+j]*x[i*n+j]) * v)
			}
		}
		in = in[3:]
	}
	w.Add(Floats(acc), sum)
	return acc
}

// columnSum adds the gradient of a bias to start: the sums of dy's columns over blocks of 64
// tokens, each from +0, one slice a block.
type columnSum struct {
	dy    operand
	rows  dim
	out   grid // one row
	start ref
}

func (s *columnSum) tiles() uint32            { return s.out.tiles() }
func (s *columnSum) words(tile, _ uint32) int { return s.out.words(tile) }
func (s *columnSum) slices(uint32) uint32     { return uint32(blocks(s.rows)) }

func (s *columnSum) reads(at spot, tile, slice uint32) []Read {
	reads := make([]Read, 0, ReadsMax)
	if slice == 0 && at.has(s.start) {
		reads = append(reads, at.read(s.start, tile))
	}
	from, to := block64(s.rows, int(slice))
	for r := from; r < to; r++ {
		reads = append(reads, s.dy.block(at, r, int(tile)).read)
	}
	return reads
}

func (s *columnSum) step(at spot, w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	n := s.out.words(tile)
	if slice == 0 {
		acc = make([]uint32, n)
		if at.has(s.start) {
			copy(acc, in[0])
			in = in[1:]
		}
	}
	sum := make([]float32, n)
	for _, words := range in {
		for rows := Floats(words); len(rows) > 0; rows = rows[n:] {
			w.Add(sum, rows[:n])
		}
	}
	w.Add(Floats(acc), sum)
	return acc
}
