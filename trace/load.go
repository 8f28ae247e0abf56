package trace

import (
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// pieces are the parts of a tensor's tiles that each lie in one chunk of its source; a chunk alone
// fills a message. Tile t of the tensor consists of pieces t·most to (t+1)·most. Surplus
// pieces are empty.
type pieces struct {
	source Source // Params or Base
	offset int    // of the tensor in it
	grid   grid
	most   int // most chunks that a tile spans
}

func newPieces(source Source, offset int, g grid) *pieces {
	p := &pieces{source: source, offset: offset, grid: g, most: 1}
	last := offset + g.rows.len()*g.cols.len() - 1
	if offset/ChunkWords == last/ChunkWords {
		return p
	}
	// apart is the greatest distance between two elements of a tile. Each row of a tile spans at
	// most two chunks.
	rows, cols := min(Side, g.rows.size), min(Side, g.cols.size)
	apart := (rows-1)*g.cols.len() + cols - 1
	p.most = min((apart+ChunkWords-1)/ChunkWords+1, 2*rows)
	return p
}

// chunks lists the chunks that a tile of the tensor spans, ascending.
func (p *pieces) chunks(tile uint32) []int {
	list := make([]int, 0, 4)
	p.runs(tile, func(_, from, to int) {
		for c := from / ChunkWords; c <= (to-1)/ChunkWords; c++ {
			if len(list) == 0 || list[len(list)-1] < c {
				list = append(list, c)
			}
		}
	})
	return list
}

// runs calls f for each row of the tile with its number in the tile and its range of parameters.
func (p *pieces) runs(tile uint32, f func(row, from, to int)) {
	r, c := p.grid.place(tile)
	r0, r1 := p.grid.rows.span(r)
	c0, c1 := p.grid.cols.span(c)
	for i := r0; i < r1; i++ {
		at := p.offset + i*p.grid.cols.len()
		f(i-r0, at+c0, at+c1)
	}
}

// piece returns the tile and the chunk of piece i. The chunk is -1 if the piece is empty.
func (p *pieces) piece(i uint32) (tile uint32, chunk int) {
	tile = i / uint32(p.most)
	chunks := p.chunks(tile)
	if at := int(i) % p.most; at < len(chunks) {
		return tile, chunks[at]
	}
	return tile, -1
}

func (p *pieces) tiles() uint32      { return p.grid.tiles() * uint32(p.most) }
func (*pieces) slices(uint32) uint32 { return 1 }

func (p *pieces) words(i, _ uint32) int {
	tile, chunk := p.piece(i)
	n := 0
	p.within(tile, chunk, func(_, _, length int) { n += length })
	return n
}

// within calls f for each run of a tile's elements in a chunk, with its offset in the tile, its
// offset in the chunk, and its length.
func (p *pieces) within(tile uint32, chunk int, f func(at, in, length int)) {
	if chunk < 0 {
		return
	}
	low, high := chunk*ChunkWords, (chunk+1)*ChunkWords
	p.runs(tile, func(row, from, to int) {
		a, b := max(from, low), min(to, high)
		if a < b {
			f(row*(to-from)+a-from, a-low, b-a)
		}
	})
}

func (p *pieces) reads(_ spot, i, _ uint32) []Read {
	if _, chunk := p.piece(i); chunk >= 0 {
		return []Read{{Source: p.source, Index: uint32(chunk)}}
	}
	return nil
}

func (p *pieces) step(_ spot, _ *exact.Worker, i, _ uint32, _ []uint32, in [][]uint32) []uint32 {
	tile, chunk := p.piece(i)
	out := make([]uint32, p.words(i, 0))
	rest := out
	p.within(tile, chunk, func(_, at, length int) {
		copy(rest[:length], in[0][min(at, len(in[0])):])
		rest = rest[length:]
	})
	return out
}

// loadTensor lists the operations that load a tensor, and returns its value.
func loadTensor(name string, offset int, g grid, source Source, add adding) value {
	p := newPieces(source, offset, g)
	v := add("pieces of "+name, -1, g, p)
	if p.most > 1 {
		v = add(name, -1, g, &join{p, v.ref})
	}
	return v
}

// join assembles the tiles of a tensor from their pieces.
type join struct {
	*pieces
	from ref
}

func (j *join) tiles() uint32            { return j.grid.tiles() }
func (j *join) slices(uint32) uint32     { return uint32((j.most + ReadsMax - 1) / ReadsMax) }
func (j *join) words(tile, _ uint32) int { return j.grid.words(tile) }
func (j *join) cut(slice uint32) (int, int) {
	return int(slice) * ReadsMax, min(int(slice+1)*ReadsMax, j.most)
}

func (j *join) reads(at spot, tile, slice uint32) []Read {
	reads := make([]Read, 0, ReadsMax)
	from, to := j.cut(slice)
	for i := from; i < to; i++ {
		reads = append(reads, at.read(j.from, tile*uint32(j.most)+uint32(i)))
	}
	return reads
}

func (j *join) step(_ spot, _ *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	if slice == 0 {
		acc = make([]uint32, j.grid.words(tile))
	}
	chunks := j.chunks(tile)
	from, to := j.cut(slice)
	for i := from; i < min(to, len(chunks)); i++ {
		words := in[i-from]
		j.within(tile, chunks[i], func(at, _, length int) {
			copy(acc[at:at+length], words)
			words = words[length:]
		})
	}
	return acc
}

// regroup cuts a matrix into the tiles of Matrix.
type regroup struct {
	from value
	to   grid
}

// sources lists the tiles of the source that share elements with a tile of the result.
func (g *regroup) sources(tile uint32) (list [][2]int) {
	r, c := g.to.place(tile)
	r0, r1 := g.to.rows.span(r)
	c0, c1 := g.to.cols.span(c)
	rows, cols := g.from.grid.rows, g.from.grid.cols
	for i := rows.tile(r0); i <= rows.tile(r1-1); i++ {
		for j := cols.tile(c0); j <= cols.tile(c1-1); j++ {
			list = append(list, [2]int{i, j})
		}
	}
	return list
}

// cut returns the sources that a slice reads.
func (g *regroup) cut(tile, slice uint32) [][2]int {
	list := g.sources(tile)
	return list[slice*ReadsMax : min((slice+1)*ReadsMax, uint32(len(list)))]
}

func (g *regroup) tiles() uint32            { return g.to.tiles() }
func (g *regroup) words(tile, _ uint32) int { return g.to.words(tile) }
func (g *regroup) slices(tile uint32) uint32 {
	return uint32((len(g.sources(tile)) + ReadsMax - 1) / ReadsMax)
}

func (g *regroup) reads(at spot, tile, slice uint32) []Read {
	reads := make([]Read, 0, ReadsMax)
	for _, s := range g.cut(tile, slice) {
		reads = append(reads, at.tile(g.from, s[0], s[1]))
	}
	return reads
}

func (g *regroup) step(_ spot, _ *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	if slice == 0 {
		acc = make([]uint32, g.to.words(tile))
	}
	r, c := g.to.place(tile)
	r0, r1 := g.to.rows.span(r)
	c0, c1 := g.to.cols.span(c)
	for n, s := range g.cut(tile, slice) {
		top, bottom := g.from.grid.rows.span(s[0])
		left, right := g.from.grid.cols.span(s[1])
		a, b := max(c0, left), min(c1, right)
		for i := max(r0, top); i < min(r1, bottom); i++ {
			copy(acc[(i-r0)*(c1-c0)+a-c0:][:b-a], in[n][(i-top)*(right-left)+a-left:])
		}
	}
	return acc
}

// tokens makes a vector of tokens of a sequence. A tile holds Side of them and the token that
// follows.
type tokens struct{ rows dim }

func (t *tokens) tiles() uint32            { return uint32(t.rows.tiles()) }
func (*tokens) slices(uint32) uint32       { return 1 }
func (t *tokens) words(tile, _ uint32) int { return t.rows.width(int(tile)) + 1 }

func (*tokens) reads(at spot, _, _ uint32) []Read {
	return []Read{{Source: Tokens, Index: at.sequence}}
}

func (t *tokens) step(_ spot, _ *exact.Worker, tile, _ uint32, _ []uint32, in [][]uint32) []uint32 {
	from, to := t.rows.span(int(tile))
	out := make([]uint32, to-from+1)
	copy(out, in[0][min(from, len(in[0])):])
	return out
}

// angles makes the cosines, then the sines, of the angles by which rotary embeddings rotate the
// pairs of a head at each position.
type angles struct {
	frequencies []float32 // of a head's pairs
	grid        grid      // a row for each position, a column for each pair
}

func newAngles(cfg llama.Config, g grid) *angles {
	a := &angles{grid: g}
	for i := range g.cols.len() {
		a.frequencies = append(a.frequencies, cfg.Frequency(i))
	}
	return a
}

func (a *angles) tiles() uint32            { return a.grid.tiles() }
func (*angles) slices(uint32) uint32       { return 1 }
func (a *angles) words(tile, _ uint32) int { return 2 * a.grid.words(tile) }

func (*angles) reads(spot, uint32, uint32) []Read { return nil }

func (a *angles) step(_ spot, w *exact.Worker, tile, _ uint32, _ []uint32, _ [][]uint32) []uint32 {
	r, c := a.grid.place(tile)
	r0, r1 := a.grid.rows.span(r)
	c0, c1 := a.grid.cols.span(c)
	out := make([]float32, 2*(r1-r0)*(c1-c0))
	w.Rows(out, 2*(r1-r0), 4, func(i, j int) {
		for ; i < j; i++ {
			for k := c0; k < c1; k++ {
				p, f := r0+i, exact.Cos
				if i >= r1-r0 {
					p, f = r0+i-(r1-r0), exact.Sin
				}
				out[i*(c1-c0)+k-c0] = f(float32(float32(p) * a.frequencies[k]))
			}
		}
	})
	return Bits(out)
}
