package trace

import "github.com/entrain-network/entrain/exact"

// lookup sets each row to its token's row of the table, or to zeros if the table has none. The
// program does not know which rows those are, so the slices traverse the whole table.
type lookup struct {
	out    grid
	tokens ref
	table  value
}

const tablesPerSlice = ReadsMax - 1

func (l *lookup) tiles() uint32            { return l.out.tiles() }
func (l *lookup) words(tile, _ uint32) int { return l.out.words(tile) }

func (l *lookup) slices(uint32) uint32 {
	return uint32((l.table.grid.rows.tiles() + tablesPerSlice - 1) / tablesPerSlice)
}

func (l *lookup) cut(slice uint32) (from, to int) {
	return int(slice) * tablesPerSlice, min(int(slice+1)*tablesPerSlice, l.table.grid.rows.tiles())
}

func (l *lookup) reads(at spot, tile, slice uint32) []Read {
	r, c := l.out.place(tile)
	reads := append(make([]Read, 0, ReadsMax), at.read(l.tokens, uint32(r)))
	from, to := l.cut(slice)
	for v := from; v < to; v++ {
		reads = append(reads, at.tile(l.table, v, c))
	}
	return reads
}

func (l *lookup) step(_ spot, _ *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	if slice == 0 {
		acc = make([]uint32, l.out.words(tile))
	}
	rows, cols := l.out.size(l.out.place(tile))
	from, to := l.cut(slice)
	for i, token := range in[0][:rows] {
		v := int(token / Side)
		if v < from || v >= to || int(token) >= l.table.grid.rows.len() {
			continue
		}
		copy(acc[i*cols:(i+1)*cols], in[1+v-from][int(token%Side)*cols:])
	}
	return acc
}

// scatter adds the gradient dx of each row to its token's row of start, row by row.
type scatter struct {
	out    grid // of the table
	tokens ref
	dx     value
	start  ref
}

func (s *scatter) tiles() uint32            { return s.out.tiles() }
func (s *scatter) words(tile, _ uint32) int { return s.out.words(tile) }

func (s *scatter) slices(uint32) uint32 {
	return uint32((s.dx.grid.rows.tiles() + pairsPerSlice - 1) / pairsPerSlice)
}

func (s *scatter) cut(slice uint32) (from, to int) {
	return int(slice) * pairsPerSlice, min(int(slice+1)*pairsPerSlice, s.dx.grid.rows.tiles())
}

func (s *scatter) reads(at spot, tile, slice uint32) []Read {
	reads := make([]Read, 0, ReadsMax)
	if slice == 0 && at.has(s.start) {
		reads = append(reads, at.read(s.start, tile))
	}
	_, c := s.out.place(tile)
	from, to := s.cut(slice)
	for r := from; r < to; r++ {
		reads = append(reads, at.read(s.tokens, uint32(r)), at.tile(s.dx, r, c))
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
		for i := range s.dx.grid.rows.width(r) {
			token := in[0][i]
			if token >= uint32(first) && token < uint32(end) {
				row := acc[(int(token)-first)*n:][:n]
				w.Add(Floats(row), Floats(in[1][i*n:(i+1)*n]))
			}
		}
		in = in[2:]
	}
	return acc
}
