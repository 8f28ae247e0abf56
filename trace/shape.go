package trace

import "sort"

// A dim is a dimension of a matrix, cut into tiles. It consists of equal groups of rows or columns,
// each cut separately, so that no tile spans two heads that lie side by side.
type dim struct{ groups, size int }

func whole(n int) dim { return dim{1, n} }

func (d dim) len() int   { return d.groups * d.size }
func (d dim) each() int  { return (d.size + Side - 1) / Side } // tiles in a group
func (d dim) tiles() int { return d.groups * d.each() }

// span returns the range of tile t.
func (d dim) span(t int) (from, to int) {
	g, i := t/d.each(), t%d.each()
	return g*d.size + i*Side, g*d.size + min((i+1)*Side, d.size)
}

// width returns the length of tile t.
func (d dim) width(t int) int {
	from, to := d.span(t)
	return to - from
}

// tile returns the number of the tile that holds index x.
func (d dim) tile(x int) int { return x/d.size*d.each() + x%d.size/Side }

// A grid is a matrix cut into tiles, numbered row by row. A causal grid has queries as rows and
// keys as columns, and only the tiles on and below the diagonal. Its rows of tiles come in pairs of
// equal length, because package llama computes 64 queries at a time, and the zeros above the
// diagonal of such a block take part in products.
type grid struct {
	rows, cols dim
	causal     bool
	window     int // columns up to the diagonal that count, in a causal grid; 0: all
}

// seen returns the columns of tile column c that row i of a causal grid attends to, counted from
// the tile's first: all if the grid is not causal.
func (g grid) seen(i, c int) (from, to int) {
	c0, c1 := g.cols.span(c)
	if !g.causal {
		return 0, c1 - c0
	}
	to = max(0, min(c1-c0, i+1-c0))
	if g.window > 0 {
		from = min(to, max(0, i+1-g.window-c0))
	}
	return from, to
}

func matrix(rows, cols int) grid { return grid{rows: whole(rows), cols: whole(cols)} }

// reach returns the number of tiles in row r of a causal grid with n rows of tiles.
func reach(r, n int) int { return min((r|1)+1, n) }

// above returns the number of tiles in the rows above r of a causal grid.
func above(r int) int {
	p := r / 2
	return 2*p*(p+1) + r%2*(2*p+2)
}

func (g grid) tiles() uint32 {
	n := g.rows.tiles()
	if g.causal {
		return uint32(above(n-1) + reach(n-1, n))
	}
	return uint32(n * g.cols.tiles())
}

// tile returns the number of the tile in row r and column c of tiles.
func (g grid) tile(r, c int) uint32 {
	if g.causal {
		return uint32(above(r) + c)
	}
	return uint32(r*g.cols.tiles() + c)
}

// place is the inverse of tile.
func (g grid) place(tile uint32) (r, c int) {
	if g.causal {
		r = sort.Search(g.rows.tiles(), func(r int) bool { return above(r+1) > int(tile) })
		return r, int(tile) - above(r)
	}
	return int(tile) / g.cols.tiles(), int(tile) % g.cols.tiles()
}

// size returns the number of rows and columns of the tile in row r and column c of tiles.
func (g grid) size(r, c int) (rows, cols int) { return g.rows.width(r), g.cols.width(c) }

func (g grid) words(tile uint32) int {
	rows, cols := g.size(g.place(tile))
	return rows * cols
}

// A ref identifies the operation that makes a value. Unless it is fixed, it counts from the first
// operation of the sequence. A negative ref is an operation of the previous sequence, which the
// first sequence lacks.
type ref int64

const (
	fixed ref = 1 << 40 // plus the number of an operation in the program
	none  ref = 1 << 41 // no operation
)

// A spot is the place of an operation in the program.
type spot struct {
	base     uint32  // number of the first operation of the sequence
	sequence uint32  // number in the share
	weight   float32 // of a token's loss
}

func (p spot) op(r ref) uint32 {
	if r >= fixed {
		return uint32(r - fixed)
	}
	return uint32(int64(p.base) + int64(r))
}

// has reports whether r is an operation of the program.
func (p spot) has(r ref) bool { return r != none && (r >= 0 || p.sequence > 0) }

func (p spot) read(r ref, tile uint32) Read { return Read{Source: Value, Op: p.op(r), Index: tile} }

// A value is the result of an operation, with its shape, or one group of its columns.
type value struct {
	ref  ref
	grid grid
	wide int // columns of tiles of the whole, if the value is a group of its columns; else 0
	from int // the group's first column of tiles
}

func (p spot) tile(v value, r, c int) Read {
	if v.wide > 0 {
		return p.read(v.ref, uint32(r*v.wide+v.from+c))
	}
	return p.read(v.ref, v.grid.tile(r, c))
}

// group returns group h of v's columns.
func (v value) group(h int) value {
	each := v.grid.cols.each()
	return value{ref: v.ref, grid: grid{rows: v.grid.rows, cols: whole(v.grid.cols.size)}, wide: v.grid.cols.tiles(), from: h * each}
}

// A part is a range of a value's rows or columns of tiles.
type part struct {
	value
	from, n int
}

// An operand is a factor of a product: parts side by side or below each other, possibly transposed.
type operand struct {
	parts      []part
	below      bool // parts are below each other
	transposed bool // the operand is their transpose
}

// one returns an operand of one value.
func one(v value) operand { return operand{parts: []part{{v, 0, v.grid.cols.tiles()}}} }

// beside returns an operand of values side by side.
func beside(values ...value) (o operand) {
	for _, v := range values {
		o.parts = append(o.parts, part{v, 0, v.grid.cols.tiles()})
	}
	return o
}

// below returns an operand of values below each other.
func below(values ...value) (o operand) {
	o.below = true
	for _, v := range values {
		o.parts = append(o.parts, part{v, 0, v.grid.rows.tiles()})
	}
	return o
}

// head returns the operand of group h of v's columns.
func (v value) head(h int) operand {
	n := v.grid.cols.each()
	return operand{parts: []part{{v, h * n, n}}}
}

// t returns the transpose of o.
func (o operand) t() operand {
	o.transposed = !o.transposed
	return o
}

// find returns the value that holds the tile in row r and column c of o before transposition, and
// the tile's row and column in it.
func (o operand) find(r, c int) (v value, row, col int) {
	at := &c
	if o.below {
		at = &r
	}
	for _, p := range o.parts {
		if *at < p.n {
			*at += p.from
			return p.value, r, c
		}
		*at -= p.n
	}
	panic("trace: tile beyond an operand")
}

// A block is a tile of an operand, with its size and strides.
type block struct {
	read             Read
	rows, cols       int
	rowStep, colStep int
}

// block returns the tile in row r and column c of tiles of the operand.
func (o operand) block(at spot, r, c int) block {
	if o.transposed {
		r, c = c, r
	}
	v, r, c := o.find(r, c)
	rows, cols := v.grid.size(r, c)
	b := block{at.tile(v, r, c), rows, cols, cols, 1}
	if o.transposed {
		b.rows, b.cols, b.rowStep, b.colStep = cols, rows, 1, cols
	}
	return b
}
