package trace

import (
	"slices"
	"sort"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
)

// oldState adds the operations that load the old state block by block and find its greatest
// magnitude.
func (d *codecTail) oldState() (blocks, most uint32) {
	n := uint32(d.codec.Blocks())
	blocks = d.add(func(tailSite) Op { return d.loadOp() })
	each := d.add(func(at tailSite) Op {
		return funcOp{
			name: "greatest magnitude in each block of the old state", tiles: n, words: words(1),
			reads: func(tile, _ uint32) []Read { return []Read{at.value(blocks, tile)} },
			step: func(_ *exact.Worker, _, _ uint32, _ []uint32, in [][]uint32) []uint32 {
				return []uint32{greatest(in[0])}
			},
		}
	})
	most = d.add(func(at tailSite) Op {
		return chain(at, "greatest magnitude in the old state", 1, each, n, func(acc []uint32, in [][]uint32) []uint32 {
			for _, words := range in {
				acc[0] = max(acc[0], greatest(words))
			}
			return acc
		})
	})
	return blocks, most
}

// greatest returns the greatest magnitude of floats, as its bits. NaN exceeds all other magnitudes.
func greatest(words []uint32) (most uint32) {
	for _, w := range words {
		most = max(most, w&0x7fffffff)
	}
	return most
}

// loadOp cuts the old state into blocks. A block spans at most two chunks.
func (d *codecTail) loadOp() Op {
	chunks := func(tile uint32) (first, last int) {
		b := d.codec.Block(int(tile))
		return b.State / ChunkWords, (b.State + b.Rows*b.Cols - 1) / ChunkWords
	}
	count := func(tile uint32) uint32 {
		first, last := chunks(tile)
		return uint32(last - first + 1)
	}
	// span returns the elements of the state that a slice loads.
	span := func(tile, slice uint32) (from, to int) {
		b := d.codec.Block(int(tile))
		chunk := b.State/ChunkWords + int(slice)
		return max(b.State, chunk*ChunkWords), min(b.State+b.Rows*b.Cols, (chunk+1)*ChunkWords)
	}
	return funcOp{
		name: "old state by blocks", tiles: uint32(d.codec.Blocks()), slices: count,
		words: func(tile, slice uint32) int {
			_, to := span(tile, slice)
			return to - d.codec.Block(int(tile)).State
		},
		reads: func(tile, slice uint32) []Read {
			from, _ := span(tile, slice)
			return []Read{{Source: State, Index: uint32(from / ChunkWords)}}
		},
		step: func(_ *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
			from, to := span(tile, slice)
			chunk := from / ChunkWords * ChunkWords
			return append(acc, in[0][from-chunk:to-chunk]...)
		},
	}
}

// momentum adds the operations that compute the momentum: the DCT of each block of the gradient,
// and its sum with the old state. Both are zeros if there is no step.
func (d *codecTail) momentum(old, step uint32) uint32 {
	coefficients := d.add(func(at tailSite) Op { return d.coefficientsOp(at, step) })
	return d.add(func(at tailSite) Op {
		return funcOp{
			name: "momentum of each block", tiles: uint32(d.codec.Blocks()), words: d.blockWords,
			reads: func(tile, _ uint32) []Read {
				return []Read{at.value(old, tile), at.value(coefficients, tile), at.value(step, 0)}
			},
			step: func(_ *exact.Worker, _, _ uint32, _ []uint32, in [][]uint32) []uint32 {
				size, ok := readStep(in[2])
				if !ok {
					return make([]uint32, len(in[0]))
				}
				momentum := slices.Clone(in[0])
				d.codec.Momentum(Floats(momentum), Floats(in[1]), size)
				return canonical(momentum)
			},
		}
	})
}

func (d *codecTail) blockWords(tile, _ uint32) int {
	b := d.codec.Block(int(tile))
	return b.Rows * b.Cols
}

// gatherMax is the most tiles of the gradient that a slice gathers. It reads the step too.
const gatherMax = ReadsMax - 1

// bandWork is the most multiply-adds of a transform in one slice; plain Go needs a few milliseconds
// for them.
const bandWork = 1 << 18

// bands returns the number of bands in which n columns of side elements, or n rows, are
// transformed.
func bands(n, side int) uint32 {
	each := max(1, bandWork/(side*side))
	return uint32((n + each - 1) / each)
}

// band returns the columns or rows of band i.
func band(n, side int, i uint32) (from, to int) {
	each := max(1, bandWork/(side*side))
	return int(i) * each, min((int(i)+1)*each, n)
}

// coefficientsOp transforms each block. Its slices gather the block's tiles of the gradient, then
// transform bands of columns, the first together with the last tiles, and then bands of rows.
func (d *codecTail) coefficientsOp(at tailSite, step uint32) Op {
	gathers := func(tile uint32) uint32 { return uint32((len(d.sources(tile).tiles) + gatherMax - 1) / gatherMax) }
	return funcOp{
		name: "coefficients of each block", tiles: uint32(d.codec.Blocks()), words: d.blockWords,
		slices: func(tile uint32) uint32 {
			b := d.codec.Block(int(tile))
			return gathers(tile) - 1 + bands(b.Cols, b.Rows) + bands(b.Rows, b.Cols)
		},
		reads: func(tile, slice uint32) []Read {
			reads := []Read{at.value(step, 0)}
			if slice >= gathers(tile) {
				return reads
			}
			s := d.sources(tile)
			op := at.gradient(s.tensor)
			for _, i := range s.of(slice) {
				reads = append(reads, Read{Source: Value, Op: op, Index: i})
			}
			return reads
		},
		step: func(w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
			if acc == nil {
				acc = make([]uint32, d.blockWords(tile, slice))
			}
			if _, ok := readStep(in[0]); !ok {
				clear(acc)
				return acc
			}
			count := gathers(tile)
			if slice < count {
				d.sources(tile).gather(acc, slice, in[1:])
			}
			if slice+1 < count {
				return acc
			}
			return d.transform(w, tile, slice+1-count, acc)
		},
	}
}

// transform computes band i of the transform of a block: of its columns, and after these of its
// rows.
func (d *codecTail) transform(w *exact.Worker, tile, i uint32, x []uint32) []uint32 {
	b, out := d.codec.Block(int(tile)), slices.Clone(x)
	if n := bands(b.Cols, b.Rows); i < n {
		from, to := band(b.Cols, b.Rows, i)
		d.codec.Columns(w, int(tile), Floats(out), Floats(x), from, to)
	} else {
		from, to := band(b.Rows, b.Cols, i-n)
		d.codec.Rows(w, int(tile), Floats(out), Floats(x), from, to)
	}
	return canonical(out)
}

// sources locates a block of the gradient: a range of a tensor's matrix, and the tiles that hold
// it.
type sources struct {
	block    codec.Block
	m        Matrix
	tensor   int
	row, col int // first element of the block in the matrix
	tiles    []uint32
}

func (d *codecTail) sources(block uint32) sources {
	b := d.codec.Block(int(block))
	i := d.flat.tensorAt(b.Offset)
	t := d.flat.tensors[i]
	at := b.Offset - t.offset
	s := sources{block: b, m: t.Matrix, tensor: i, row: at / t.Cols, col: at % t.Cols}
	for r := s.row / Side; r <= (s.row+b.Rows-1)/Side; r++ {
		for c := s.col / Side; c <= (s.col+b.Cols-1)/Side; c++ {
			s.tiles = append(s.tiles, uint32(r*s.m.Across()+c))
		}
	}
	return s
}

// of returns the tiles that a slice gathers.
func (s sources) of(slice uint32) []uint32 {
	from := int(slice) * gatherMax
	return s.tiles[from:min(from+gatherMax, len(s.tiles))]
}

// gather copies the elements of a slice's tiles into the block.
func (s sources) gather(block []uint32, slice uint32, in [][]uint32) {
	for i, tile := range s.of(slice) {
		r0, r1, c0, c1 := s.m.bounds(tile)
		from, to := max(c0, s.col), min(c1, s.col+s.block.Cols)
		for r := max(r0, s.row); r < min(r1, s.row+s.block.Rows); r++ {
			copy(block[(r-s.row)*s.block.Cols+from-s.col:], in[i][(r-r0)*(c1-c0)+from-c0:(r-r0)*(c1-c0)+to-c0])
		}
	}
}

// codes adds the operation that makes the code of each block, lowest word first: what is sent of
// it.
func (d *codecTail) codes(momentum uint32) uint32 {
	return d.add(func(at tailSite) Op {
		return funcOp{
			name: "code of each block", tiles: uint32(d.codec.Blocks()),
			words: func(tile, _ uint32) int { return (d.codec.Block(int(tile)).Bits + 31) / 32 },
			reads: func(tile, _ uint32) []Read { return []Read{at.value(momentum, tile)} },
			step: func(_ *exact.Worker, tile, _ uint32, _ []uint32, in [][]uint32) []uint32 {
				code := d.codec.Code(int(tile), Floats(slices.Clone(in[0])))
				out := make([]uint32, (d.codec.Block(int(tile)).Bits+31)/32)
				for i := range out {
					out[i] = uint32(code[i/2] >> uint(i%2*32))
				}
				return out
			},
		}
	})
}

// leftOp makes the new state of each block: the momentum that is not sent.
func (d *codecTail) leftOp(momentum uint32) func(at tailSite) Op {
	return func(at tailSite) Op {
		return funcOp{
			name: "new state of each block", tiles: uint32(d.codec.Blocks()), words: d.blockWords,
			reads: func(tile, _ uint32) []Read { return []Read{at.value(momentum, tile)} },
			step: func(_ *exact.Worker, tile, _ uint32, _ []uint32, in [][]uint32) []uint32 {
				left := slices.Clone(in[0])
				d.codec.Code(int(tile), Floats(left))
				return left
			},
		}
	}
}

// groupWords is the most words of a state that a slice reads, except for a single block that is
// larger.
const groupWords = ReadsMax * Side * Side

// groups divides the blocks of a codec into groups that are read together: up to ReadsMax blocks
// and groupWords words.
func groups(c codec.Disputable) []int {
	first := []int{0}
	begin := 0 // offset of the group in the state
	for i := range c.Blocks() {
		b := c.Block(i)
		if last := first[len(first)-1]; i > last && (i-last == ReadsMax || b.State+b.Rows*b.Cols-begin > groupWords) {
			first, begin = append(first, i), b.State
		}
	}
	return append(first, c.Blocks())
}

// stateBytes is the new state as a blob, from the blocks of operation of.
type stateBytes struct {
	d  *codecTail
	at tailSite
	of uint32
}

// blockAt returns the block that holds an element of the state.
func (s stateBytes) blockAt(element int) int {
	return sort.Search(s.d.codec.Blocks(), func(i int) bool { return s.d.codec.Block(i).State > element }) - 1
}

func (s stateBytes) groupAt(block int) int {
	i, found := slices.BinarySearch(s.d.groups, block)
	if !found {
		i--
	}
	return i
}

// span returns the elements of a chunk.
func (s stateBytes) span(chunk uint32) (from, to int) {
	return int(chunk) * ChunkWords, min((int(chunk)+1)*ChunkWords, s.d.codec.StateLen())
}

// blocks returns the blocks that a slice of a chunk reads.
func (s stateBytes) blocks(chunk, slice uint32) (first, last int) {
	from, to := s.span(chunk)
	first, last = s.blockAt(from), s.blockAt(to-1)
	group := s.groupAt(first) + int(slice)
	return max(first, s.d.groups[group]), min(last, s.d.groups[group+1]-1)
}

func (s stateBytes) slices(chunk uint32) uint32 {
	from, to := s.span(chunk)
	return uint32(s.groupAt(s.blockAt(to-1)) - s.groupAt(s.blockAt(from)) + 1)
}

func (s stateBytes) reads(chunk, slice uint32) []Read {
	first, last := s.blocks(chunk, slice)
	return s.at.values(s.of, uint32(first), uint32(last)+1)
}

func (s stateBytes) bytes(chunk, slice uint32, in [][]uint32) []byte {
	first, _ := s.blocks(chunk, slice)
	from, to := s.span(chunk)
	var words []uint32
	for i, block := range in {
		at := s.d.codec.Block(first + i).State
		words = append(words, block[max(from-at, 0):min(to-at, len(block))]...)
	}
	return littleEndian(words)
}
