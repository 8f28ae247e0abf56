package distro

import (
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// A block is a rectangle of a tensor that is transformed and coded on its own.
type block struct {
	offset int // of its first element in the flat slice
	stride int // from one of its rows to the next
	state  int // offset of its coefficients, row-major, in the private state
	bit    int // offset of its code in a payload after the header, in bits
	signs  int // offset of its signs in an update after the header, in bytes
	shape  *shape
}

// A grid is the blocks of a tensor. Each is a function of its number: a table of all would take a
// byte a weight, with small blocks.
type grid struct {
	first      int // number of the first block
	block          // the first one, without its shape
	rows, cols side
	matrix     int // numbers in a matrix, of which the tensor has some
	// By whether the height is the lesser one, and whether the width is; zero if no block is so.
	shapes [2][2]*shape
	bits   [2][2]int // in a payload, of a block
	bytes  [2][2]int // in an update, of a block
	row    [2]length // of a row of blocks, by its height
	all    length    // of a matrix
}

// length is that of some blocks in a payload and in an update.
type length struct{ bits, bytes int }

// A side is a dimension that is cut into pieces. The first ones are longer by one.
type side struct{ size, count, longer int }

func newSide(size, chunk int) side {
	n := pieces(size, chunk)
	return side{size, n, size % n}
}

// piece returns the start of piece i, and 0 if it is a longer one, 1 if not.
func (s side) piece(i int) (from, less int) {
	if i >= s.longer {
		less = 1
	}
	return i*(s.size/s.count) + min(i, s.longer), less
}

// has returns how many pieces are long, and how many are not.
func (s side) has() [2]int { return [2]int{s.longer, s.count - s.longer} }

// count returns the number of the tensor's blocks in a matrix.
func (g *grid) count() int { return g.rows.count * g.cols.count }

// A cursor is at a block.
type cursor struct {
	block
	i    int // number of the block
	left int // blocks of its shape from it on, in its row
	of   []grid
}

// at returns a cursor at block i, which may be the end.
func (c *Codec) at(i int) (at cursor) {
	at.of = c.grids
	at.move(i)
	return at
}

// move moves the cursor to block i.
func (at *cursor) move(i int) {
	from, to := 0, len(at.of)
	for to-from > 1 { // the last grid that begins at i or before
		if half := (from + to) / 2; at.of[half].first <= i {
			from = half
		} else {
			to = half
		}
	}
	at.i = i
	if to == 0 {
		return
	}
	g := &at.of[from]
	matrix, k := (i-g.first)/g.count(), (i-g.first)%g.count()
	row, col := k/g.cols.count, k%g.cols.count
	y, h := g.rows.piece(row)
	x, w := g.cols.piece(col)
	long, wide := min(row, g.rows.longer), min(col, g.cols.longer)
	at.shape = g.shapes[h][w]
	at.left = g.cols.has()[0] - col
	if w == 1 {
		at.left = g.cols.count - col
	}
	before := matrix*g.matrix + y*g.cols.size
	at.offset, at.stride, at.state = g.offset+before+x, g.cols.size, g.state+before+at.shape.h*x
	at.bit = g.bit + matrix*g.all.bits + long*g.row[0].bits + (row-long)*g.row[1].bits + wide*g.bits[h][0] + (col-wide)*g.bits[h][1]
	at.signs = g.signs + matrix*g.all.bytes + long*g.row[0].bytes + (row-long)*g.row[1].bytes + wide*g.bytes[h][0] + (col-wide)*g.bytes[h][1]
}

// next moves the cursor to the next block.
func (at *cursor) next() {
	if at.left--; at.left == 0 {
		at.move(at.i + 1)
		return
	}
	s := at.shape
	at.i++
	at.offset += s.w
	at.state += s.h * s.w
	at.bit += s.Bits
	at.signs += s.bytes()
}

// bytes returns how many bytes a block's signs take in an update.
func (s *shape) bytes() int { return (s.h*s.w + 7) / 8 }

// cutter makes the grids of a layout.
type cutter struct {
	cfg          Config
	worker       *exact.Worker // packs bases for the pool's kernel
	combinations subset.Table
	bases        []*basis // by number of points
	shapes       []*shape // at most four for a tensor
	grids        []grid
	end          block // after the last one
	blocks       int
}

// newCutter returns a cutter whose table is large enough for the blocks of the layout.
func newCutter(layout tensor.Layout, cfg Config, worker *exact.Worker) *cutter {
	largest := 1
	for _, t := range layout.Tensors() {
		rows, cols := sides(t)
		largest = max(largest, longest(rows, cfg.Block)*longest(cols, cfg.Block))
	}
	return &cutter{
		cfg:          cfg,
		worker:       worker,
		combinations: subset.NewTable(largest, min(cfg.TopK, largest)),
		bases:        make([]*basis, cfg.Block+1),
	}
}

// sides returns the last two dimensions of a tensor, 1 for those it lacks.
func sides(t tensor.Tensor) (rows, cols int) {
	rows, cols = 1, 1
	if n := len(t.Shape); n > 0 {
		cols = t.Shape[n-1]
		if n > 1 {
			rows = t.Shape[n-2]
		}
	}
	return rows, cols
}

// pieces returns the number of pieces into which a dimension is cut: their sizes differ by at most
// one, the longer first, and none exceeds chunk.
func pieces(size, chunk int) int { return (size + chunk - 1) / chunk }

// longest returns the size of the longest of them.
func longest(size, chunk int) int { return pieces(size, pieces(size, chunk)) }

// cut appends the blocks of a tensor. The dimensions before the last two count matrices. Blocks are
// in the order of matrices, then of rows of blocks.
func (c *cutter) cut(t tensor.Tensor) {
	height, width := sides(t)
	g := grid{first: c.blocks, block: c.end, rows: newSide(height, c.cfg.Block), cols: newSide(width, c.cfg.Block), matrix: height * width}
	g.offset = t.Offset
	for h, down := range g.rows.has() {
		for w, across := range g.cols.has() {
			if down == 0 || across == 0 {
				continue
			}
			s := c.shape(height/g.rows.count+1-h, width/g.cols.count+1-w)
			g.shapes[h][w], g.bits[h][w], g.bytes[h][w] = s, s.Bits, s.bytes()
			g.row[h].bits += across * s.Bits
			g.row[h].bytes += across * s.bytes()
		}
		g.all.bits += down * g.row[h].bits
		g.all.bytes += down * g.row[h].bytes
	}
	matrices := t.Len / g.matrix
	c.end.state += t.Len
	c.end.bit += matrices * g.all.bits
	c.end.signs += matrices * g.all.bytes
	c.blocks += matrices * g.count()
	c.grids = append(c.grids, g)
}

// shape returns the shape of h rows of w, which it makes at first use.
func (c *cutter) shape(h, w int) *shape {
	for _, s := range c.shapes {
		if s.h == h && s.w == w {
			return s
		}
	}
	s := newShape(h, w, c.cfg.TopK, c.basis(h), c.basis(w), c.combinations)
	s.place()
	c.shapes = append(c.shapes, s)
	return s
}

// A shape is a size of blocks and the tables for coding them. Blocks of one size share it.
type shape struct {
	subset.Space // of the coefficients
	h, w         int
	run          int      // coefficients in a run of vec.Lanes groups for Picker.Top
	rows, cols   *basis   // for h and w points
	byRow        []uint16 // index of each position when coefficients are in rows
	byColumn     []uint16 // index when they are in columns of rows.ld; nil if that does not pay
}

func newShape(h, w, topK int, rows, cols *basis, table subset.Table) *shape {
	s := &shape{Space: subset.NewSpace(h*w, topK, table), h: h, w: w, rows: rows, cols: cols}
	const groups = 8 // per coefficient sent
	s.run = max(1, h*w/(groups*s.K)) * vec.Lanes
	return s
}

// place makes the tables byRow and byColumn.
func (s *shape) place() {
	for p := range s.h * s.w {
		s.byRow = append(s.byRow, uint16(p))
	}
	if s.h <= s.rows.ld/2 { // most of the work would be padding
		return
	}
	for p := range s.h * s.w {
		s.byColumn = append(s.byColumn, uint16(p%s.w*s.rows.ld+p/s.w))
	}
}

// basis returns the basis of n points, which it makes at first use.
func (c *cutter) basis(n int) *basis {
	if c.bases[n] == nil {
		c.bases[n] = newBasis(c.worker, n)
	}
	return c.bases[n]
}
