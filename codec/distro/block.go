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

// cutter makes the blocks of a layout.
type cutter struct {
	cfg          Config
	worker       *exact.Worker // packs bases for the pool's kernel
	combinations subset.Table
	bases        []*basis // by number of points
	shapes       []*shape // at most four for a tensor
	blocks       []block
	state, bit   int
	signs        int
}

// newCutter returns a cutter whose table is large enough for the blocks of the layout.
func newCutter(layout tensor.Layout, cfg Config, worker *exact.Worker) *cutter {
	largest := 1
	for _, t := range layout.Tensors() {
		rows, cols := sides(t)
		_, h := piece(rows, pieces(rows, cfg.Block), 0)
		_, w := piece(cols, pieces(cols, cfg.Block), 0)
		largest = max(largest, h*w)
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

// piece returns the start and the size of piece i of count pieces of a dimension.
func piece(size, count, i int) (from, n int) {
	n, longer := size/count, size%count
	from = i*n + min(i, longer)
	if i < longer {
		n++
	}
	return from, n
}

// cut appends the blocks of a tensor. The dimensions before the last two count matrices. Blocks are
// in the order of matrices, then of rows of blocks.
func (c *cutter) cut(t tensor.Tensor) {
	rows, cols := sides(t)
	down, across := pieces(rows, c.cfg.Block), pieces(cols, c.cfg.Block)
	for matrix := t.Offset; matrix < t.Offset+t.Len; matrix += rows * cols {
		for i := range down {
			row, h := piece(rows, down, i)
			for j := range across {
				col, w := piece(cols, across, j)
				s := c.shape(h, w)
				c.blocks = append(c.blocks, block{offset: matrix + row*cols + col, stride: cols, state: c.state, bit: c.bit, signs: c.signs, shape: s})
				c.state += h * w
				c.bit += s.Bits
				c.signs += (h*w + 7) / 8
			}
		}
	}
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
