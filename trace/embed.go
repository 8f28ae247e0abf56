package trace

import (
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
)

// lookup sets each row to its token's row of the table, or to zeros if the table has none. With a
// start it subtracts from start's row the table's row of the target, the token that follows, times
// the weight of a token's loss, unless it is masked. The program does not know which rows of the
// table those are, so the slices traverse the whole table.
type lookup struct {
	out    grid
	tokens ref
	table  value
	start  ref // a value of the shape of out, or none
}

// tables returns the number of tiles of the table that a slice reads.
func (l *lookup) tables() int {
	if l.start != none {
		return ReadsMax - 2
	}
	return ReadsMax - 1
}

func (l *lookup) tiles() uint32            { return l.out.tiles() }
func (l *lookup) words(tile, _ uint32) int { return l.out.words(tile) }

func (l *lookup) slices(uint32) uint32 {
	return uint32((l.table.grid.rows.tiles() + l.tables() - 1) / l.tables())
}

func (l *lookup) cut(slice uint32) (from, to int) {
	return int(slice) * l.tables(), min(int(slice+1)*l.tables(), l.table.grid.rows.tiles())
}

func (l *lookup) reads(at spot, tile, slice uint32) []Read {
	r, c := l.out.place(tile)
	reads := make([]Read, 0, ReadsMax)
	if slice == 0 && l.start != none {
		reads = append(reads, at.read(l.start, tile))
	}
	reads = append(reads, at.read(l.tokens, uint32(r)))
	from, to := l.cut(slice)
	for v := from; v < to; v++ {
		reads = append(reads, at.tile(l.table, v, c))
	}
	return reads
}

func (l *lookup) step(at spot, _ *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	if slice == 0 {
		acc = make([]uint32, l.out.words(tile))
		if l.start != none {
			copy(acc, in[0])
			in = in[1:]
		}
	}
	rows, cols := l.out.size(l.out.place(tile))
	from, to := l.cut(slice)
	tokens := in[0]
	if l.start != none {
		tokens = tokens[1:]
	}
	for i, token := range tokens[:rows] {
		if l.start == none {
			token &^= llama.Masked
		}
		v := int(token / Side)
		if v < from || v >= to || int(token) >= l.table.grid.rows.len() {
			continue
		}
		to, row := acc[i*cols:(i+1)*cols], in[1+v-from][int(token%Side)*cols:][:cols]
		if l.start == none {
			copy(to, row)
		} else {
			subtractScaled(Floats(to), Floats(row), at.weight)
		}
	}
	return acc
}

// subtractScaled computes y -= weight·x, with a rounding after each operation.
func subtractScaled(y, x []float32, weight float32) {
	for i, v := range x {
		y[i] -= float32(weight * v)
	}
}

// scatter adds each row of x to its token's row of start, row by row. With targets it subtracts the
// row, times the weight of a token's loss, from the row of the target, the token that follows,
// unless that is masked.
type scatter struct {
	out     grid // of the table
	tokens  ref
	x       value
	start   ref
	targets bool
}

func (s *scatter) tiles() uint32            { return s.out.tiles() }
func (s *scatter) words(tile, _ uint32) int { return s.out.words(tile) }

func (s *scatter) slices(uint32) uint32 {
	return uint32((s.x.grid.rows.tiles() + pairsPerSlice - 1) / pairsPerSlice)
}

func (s *scatter) cut(slice uint32) (from, to int) {
	return int(slice) * pairsPerSlice, min(int(slice+1)*pairsPerSlice, s.x.grid.rows.tiles())
}

func (s *scatter) reads(at spot, tile, slice uint32) []Read {
	reads := make([]Read, 0, ReadsMax)
	if slice == 0 && at.has(s.start) {
		reads = append(reads, at.read(s.start, tile))
	}
	_, c := s.out.place(tile)
	from, to := s.cut(slice)
	for r := from; r < to; r++ {
		reads = append(reads, at.read(s.tokens, uint32(r)), at.tile(s.x, r, c))
	}
	return reads
}

func (s *scatter) step(at spot, w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	if slice == 0 {
		acc = make([]uint32, s.out.words(tile))
		if at.has(s.start) {
			copy(acc, in[0])
			in = in[1:]
		}
	}
	row, col := s.out.place(tile)
	first, end := s.out.rows.span(row)
	n := s.out.cols.width(col)
	from, to := s.cut(slice)
	for r := from; r < to; r++ {
		tokens := in[0]
		if s.targets {
			tokens = tokens[1:]
		}
		for i := range s.x.grid.rows.width(r) {
			token := tokens[i]
			if !s.targets {
				token &^= llama.Masked
			}
			if token < uint32(first) || token >= uint32(end) {
				continue
			}
			to, row := Floats(acc[(int(token)-first)*n:][:n]), Floats(in[1][i*n:(i+1)*n])
			if s.targets {
				subtractScaled(to, row, at.weight)
			} else {
				w.Add(to, row)
			}
		}
		in = in[2:]
	}
	return acc
}
