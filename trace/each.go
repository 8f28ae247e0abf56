package trace

import (
	"slices"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// A function is what an elementwise operation computes from its matrices m0, m1, m2, which have the
// same tiles, and its vectors of one number a row. Vectors are numbered after the matrices: v1 is
// the first after m0.
type function uint8

const (
	normalize     function = iota // (m0·v1)·gains, as exact.Worker.Normalize
	normGradient                  // m0 + (m1·gains)·v3 + m2·v4, as RMSNormBackward; m0 may be none
	probability                   // Exp(m0·scale - v1)·v2, 0 where a row does not attend
	scoreGradient                 // (m1·(m0 - v2))·scale, and 0 there
	swiglu                        // (m0·Sigmoid(m0))·m1, as SwiGLU
	gateGradient                  // g of SwiGLUBackward for g = m0, u = m1, dh = m2
	upGradient                    // u of the same
	logitGradient                 // logitShare, less the weight at the target in v3
	logitShare                    // Exp(m0 - v1)·v2, or 0 if the target in v3 is masked
	addRow                        // m0 + gains
	scaled                        // m0·scale
)

// elementwise is an operation whose elements depend on the elements of other matrices at their
// place, and on numbers of their row and column. Each tile is one slice.
type elementwise struct {
	function function
	out      grid
	m        []value
	v        []ref
	gains    ref // a vector over the columns, or none
	scale    float32
}

func (e *elementwise) tiles() uint32            { return e.out.tiles() }
func (*elementwise) slices(uint32) uint32       { return 1 }
func (e *elementwise) words(tile, _ uint32) int { return e.out.words(tile) }

func (e *elementwise) reads(at spot, tile, _ uint32) []Read {
	r, c := e.out.place(tile)
	reads := make([]Read, 0, ReadsMax)
	for _, m := range e.m {
		if m.ref != none {
			reads = append(reads, at.tile(m, r, c))
		}
	}
	for _, v := range e.v {
		reads = append(reads, at.read(v, uint32(r)))
	}
	if e.gains != none {
		reads = append(reads, at.read(e.gains, uint32(c)))
	}
	return reads
}

func (e *elementwise) step(at spot, w *exact.Worker, tile, _ uint32, _ []uint32, in [][]uint32) []uint32 {
	r, c := e.out.place(tile)
	r0, r1 := e.out.rows.span(r)
	c0, c1 := e.out.cols.span(c)
	out := make([]float32, (r1-r0)*(c1-c0))
	var m [3][]float32
	for i := range e.m {
		if e.m[i].ref == none {
			m[i] = make([]float32, len(out))
		} else {
			m[i], in = Floats(in[0]), in[1:]
		}
	}
	w.Rows(out, r1-r0, 1, func(i, j int) {
		for ; i < j; i++ {
			e.row(at, w, i, r0, c, out, m, in)
		}
	})
	return Bits(out)
}

// row computes row i of a tile.
func (e *elementwise) row(at spot, w *exact.Worker, i, r0, c int, out []float32, m [3][]float32, in [][]uint32) {
	c0, c1 := e.out.cols.span(c)
	width := c1 - c0
	row := func(m []float32) []float32 { return m[i*width : (i+1)*width] }
	own := func(v int) float32 { return Floats(in[v])[i] }
	from, seen := e.out.seen(r0+i, c)
	switch y := row(out); e.function {
	case normalize:
		w.Normalize(y, row(m[0]), Floats(in[1]), own(0))
	case normGradient:
		copy(y, row(m[0]))
		addNormGradient(y, row(m[1]), row(m[2]), Floats(in[2]), own(0), own(1))
	case probability:
		copy(y[from:seen], row(m[0])[from:])
		w.SoftmaxAgain(y[from:seen], e.scale, own(0), own(1))
	case scoreGradient:
		copy(y[from:seen], row(m[0])[from:])
		addScoreGradient(y[from:seen], row(m[1])[from:], own(0), e.scale)
	case addRow:
		copy(y, row(m[0]))
		w.Add(y, Floats(in[0]))
	case scaled:
		for j, v := range row(m[0]) {
			y[j] = float32(e.scale * v)
		}
	case swiglu:
		w.SwiGLU(y, row(m[0]), row(m[1]))
	case gateGradient:
		copy(y, row(m[0]))
		w.SwiGLUBackward(slices.Clone(row(m[2])), y, slices.Clone(row(m[1])))
	case upGradient:
		copy(y, row(m[1]))
		w.SwiGLUBackward(slices.Clone(row(m[2])), slices.Clone(row(m[0])), y)
	case logitShare, logitGradient:
		target := in[2][i+1]
		if target&llama.Masked != 0 {
			return
		}
		copy(y, row(m[0]))
		w.SoftmaxAgain(y, 1, own(0), own(1))
		if e.function == logitGradient && target >= uint32(c0) && target < uint32(c1) {
			y[target-uint32(c0)] -= at.weight
		}
	}
}

// addNormGradient computes dx += (dy·g)·inv + x·c.
func addNormGradient(dx, dy, x, g []float32, inv, c float32) {
	for i, v := range x {
		dx[i] += float32(float32(dy[i]*g[i])*inv) + float32(v*c)
	}
}

// addScoreGradient replaces dp, the gradient of the probabilities p, by (p·(dp - sum))·scale.
func addScoreGradient(dp, p []float32, sum, scale float32) {
	for i, v := range dp {
		dp[i] = float32(float32(p[i]*(v-sum)) * scale)
	}
}

// rotation applies rotary embeddings: it rotates the pairs of each head of x by the angles of the
// row's position, or by the opposite angles.
type rotation struct {
	x      operand
	out    grid  // columns in groups, one a head
	angles value // a row for each position, a column for each pair
	back   bool
}

func (t *rotation) tiles() uint32            { return t.out.tiles() }
func (*rotation) slices(uint32) uint32       { return 1 }
func (t *rotation) words(tile, _ uint32) int { return t.out.words(tile) }

// plan returns what column c of tiles depends on: its head, the tiles of that head's columns, and
// the tiles of angles.
func (t *rotation) plan(c int) (head int, columns, angles []int) {
	each, half := t.out.cols.each(), t.out.cols.size/2
	head = c / each
	from, to := t.out.cols.span(c)
	add := func(list []int, tile int) []int {
		if slices.Contains(list, tile) {
			return list
		}
		return append(list, tile)
	}
	for x := from - head*t.out.cols.size; x < to-head*t.out.cols.size; x++ {
		columns = add(add(columns, x/Side), (x+half)%(2*half)/Side)
		angles = add(angles, x%half/Side)
	}
	return head, columns, angles
}

func (t *rotation) reads(at spot, tile, _ uint32) []Read {
	r, c := t.out.place(tile)
	head, columns, angles := t.plan(c)
	reads := make([]Read, 0, ReadsMax)
	for _, x := range columns {
		reads = append(reads, t.x.block(at, r, head*t.out.cols.each()+x).read)
	}
	for _, a := range angles {
		reads = append(reads, at.tile(t.angles, r, a))
	}
	return reads
}

func (t *rotation) step(_ spot, _ *exact.Worker, tile, _ uint32, _ []uint32, in [][]uint32) []uint32 {
	r, c := t.out.place(tile)
	head, columns, angles := t.plan(c)
	rows, width := t.out.size(r, c)
	from, _ := t.out.cols.span(c)
	from -= head * t.out.cols.size
	half := t.out.cols.size / 2
	out := make([]float32, rows*width)
	for i := range width {
		x, pair := from+i, (from+i+half)%(2*half)
		a, aw := Floats(in[slices.Index(columns, x/Side)]), t.out.cols.width(x/Side)
		b, bw := Floats(in[slices.Index(columns, pair/Side)]), t.out.cols.width(pair/Side)
		k := x % half
		both := Floats(in[len(columns)+slices.Index(angles, k/Side)])
		cos, sin, kw := both[:len(both)/2], both[len(both)/2:], t.angles.grid.cols.width(k/Side)
		for j := range rows {
			// The first of a pair subtracts the other's sine term, and the second adds it; rotating
			// back exchanges the signs.
			straight := float32(a[j*aw+x%Side] * cos[j*kw+k%Side])
			across := float32(b[j*bw+pair%Side] * sin[j*kw+k%Side])
			if (x < half) != t.back {
				out[j*width+i] = straight - across
			} else {
				out[j*width+i] = straight + across
			}
		}
	}
	return Bits(out)
}
