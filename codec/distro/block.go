package distro

import (
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tensor"
)

// A block is a rectangle of a tensor which is transformed and coded on its own.
type block struct {
	offset int // of its first element in the flat slice
	stride int // from one of its rows to the next
	state  int // offset of its coefficients, row-major, in the private state
	bit    int // offset of its code in a payload, in bits
	shape  *shape
}

// cutter makes the blocks of a layout.
type cutter struct {
	cfg          Config
	worker       *exact.Worker // packs bases for the pool's kernel
	combinations subset.Table
	bases        []*basis // by number of points
	shapes       []*shape // few: a tensor's blocks have at most four shapes
	blocks       []block
	state, bit   int
}

// newCutter makes the table of subset.Table as large as the blocks of the layout will need.
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

// pieces returns into how many pieces a dimension of size is cut. They differ by at most one, the
// longer first, and none exceeds chunk.
func pieces(size, chunk int) int { return (size + chunk - 1) / chunk }

// piece returns where piece i of count of a dimension begins, and its size.
func piece(size, count, i int) (from, n int) {
	n, longer := size/count, size%count
	from = i*n + min(i, longer)
	if i < longer {
		n++
	}
	return from, n
}

// cut appends the blocks of a tensor: the last two dimensions are cut into pieces, those before
// count matrices. Blocks follow one another by matrix, then by rows of blocks.
func (c *cutter) cut(t tensor.Tensor) {
	rows, cols := sides(t)
	down, across := pieces(rows, c.cfg.Block), pieces(cols, c.cfg.Block)
	for matrix := t.Offset; matrix < t.Offset+t.Len; matrix += rows * cols {
		for i := range down {
			row, h := piece(rows, down, i)
			for j := range across {
				col, w := piece(cols, across, j)
				s := c.shape(h, w)
				c.blocks = append(c.blocks, block{offset: matrix + row*cols + col, stride: cols, state: c.state, bit: c.bit, shape: s})
				c.state += h * w
				c.bit += s.Bits
			}
		}
	}
}

// shape returns the shape of h rows of w, made at first use.
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

// A shape is a size of blocks, with what coding needs to know of it. Blocks of one size share it.
type shape struct {
	subset.Space // of the coefficients
	h, w         int
	run          int      // how many coefficients after one another make vec.Lanes groups for top: about 8K groups in all
	rows, cols   *basis   // of h and of w points
	byRow        []uint16 // of each position, where it is when coefficients are in rows, row-major: there
	byColumn     []uint16 // where it is when they are in columns of rows.ld; nil if the shape is not worth it
}

func newShape(h, w, topK int, rows, cols *basis, table subset.Table) *shape {
	s := &shape{Space: subset.NewSpace(h*w, topK, table), h: h, w: w, rows: rows, cols: cols}
	const groups = 8 // a coefficient sent
	s.run = max(1, h*w/(groups*s.K)) * vec.Lanes
	return s
}

// place makes the tables of where coefficients are.
func (s *shape) place() {
	for p := range s.h * s.w {
		s.byRow = append(s.byRow, uint16(p))
	}
	if s.h <= s.rows.ld/2 { // most of the work would be for the zeros at the ends
		return
	}
	for p := range s.h * s.w {
		s.byColumn = append(s.byColumn, uint16(p%s.w*s.rows.ld+p/s.w))
	}
}

// basis returns the basis of n points, made at first use.
func (c *cutter) basis(n int) *basis {
	if c.bases[n] == nil {
		c.bases[n] = newBasis(c.worker, n)
	}
	return c.bases[n]
}
