package trace

import (
	"context"
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

// A Trace is a program that was run: the hash of every operation, and the means to open each down
// to its slices by computing it again. It must not be used concurrently.
type Trace struct {
	machine
	ops    []wire.Hash
	root   wire.Hash
	opened opened
}

// machine runs a program.
type machine struct {
	p    Program
	pool *exact.Pool
	src  Sources
	uses [][]uint32          // operations that each operation reads, ascending
	read map[uint32][]uint32 // sequences of tokens, by number
	// lie changes the words after a slice. It is nil except in tests.
	lie func(op, tile, slice uint32, words []uint32)
}

// A result is the value of an operation.
type result struct {
	tiles  [][]uint32
	leaves []wire.Hash   // of the tiles
	ends   [][]wire.Hash // proof of each tile's last slice, if requested
}

// Run runs p on src and returns the trace. It fails if src.Tokens fails or ctx ends.
func Run(ctx context.Context, pool *exact.Pool, p Program, src Sources) (*Trace, error) {
	t := &Trace{machine: machine{p: p, pool: pool, src: src, read: map[uint32][]uint32{}}}
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	all := make([]bool, p.Len())
	for i := range all {
		all[i] = true
	}
	t.ops = make([]wire.Hash, p.Len())
	_, err := t.execute(ctx, all, nil, func(op uint32, r *result) { t.ops[op] = bisect.Root(r.leaves) })
	if err != nil {
		return nil, err
	}
	t.root = bisect.Root(t.ops)
	return t, nil
}

// prepare determines what each operation reads, and reads the tokens.
func (m *machine) prepare(ctx context.Context) error {
	m.uses = make([][]uint32, m.p.Len())
	for t := range m.uses {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.findReads(uint32(t)); err != nil {
			return err
		}
	}
	return nil
}

// findReads determines what operation t reads, and reads its tokens.
func (m *machine) findReads(t uint32) error {
	op := m.p.Op(t)
	found := map[uint32]bool{}
	for tile := range op.Tiles() {
		for slice := range op.Slices(tile) {
			for _, r := range op.Reads(tile, slice) {
				switch r.Source {
				case Value:
					if r.Op >= t {
						panic(fmt.Sprintf("trace: operation %d, %s, reads operation %d", t, op.Name(), r.Op))
					}
					found[r.Op] = true
				case Tokens:
					if err := m.fetch(r.Index); err != nil {
						return err
					}
				}
			}
		}
	}
	for u := range found {
		m.uses[t] = append(m.uses[t], u)
	}
	slices.Sort(m.uses[t])
	return nil
}

// fetch reads a sequence of tokens.
func (m *machine) fetch(i uint32) error {
	if _, ok := m.read[i]; ok {
		return nil
	}
	words, err := m.src.Tokens(i)
	if err != nil {
		return fmt.Errorf("trace: tokens of sequence %d: %w", i, err)
	}
	m.read[i] = words
	return nil
}

// execute computes the chosen operations, which must include all that they read, in order, and
// passes each value to done. It returns the values in keep, which is ascending, and drops other
// values once no chosen operation reads them.
func (m *machine) execute(ctx context.Context, chosen []bool, keep []uint32, done func(op uint32, r *result)) (map[uint32]*result, error) {
	last := make([]int, len(chosen))
	for t, uses := range m.uses {
		for _, u := range uses {
			if chosen[t] {
				last[u] = t
			}
		}
	}
	values := map[uint32]*result{}
	for t := range chosen {
		if !chosen[t] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		_, kept := slices.BinarySearch(keep, uint32(t))
		r := m.make(uint32(t), values, kept)
		done(uint32(t), r)
		if kept || last[t] > t {
			values[uint32(t)] = r
		}
		for _, u := range m.uses[t] {
			if _, kept := slices.BinarySearch(keep, u); !kept && last[u] == t {
				delete(values, u)
			}
		}
	}
	return values, nil
}

// make computes an operation from the values it reads. If ends is set, it also proves the last
// slice of each tile.
func (m *machine) make(t uint32, values map[uint32]*result, ends bool) *result {
	op := m.p.Op(t)
	n := op.Tiles()
	r := &result{tiles: make([][]uint32, n), leaves: make([]wire.Hash, n)}
	if ends {
		r.ends = make([][]wire.Hash, n)
	}
	m.pool.RunOn(int(n), func(w *exact.Worker, i int) {
		tile := uint32(i)
		hashes := make([]wire.Hash, op.Slices(tile))
		m.slices(w, op, t, tile, values, func(slice uint32, words []uint32) bool {
			hashes[slice] = leaf(op, words)
			r.tiles[tile] = words
			return true
		})
		r.leaves[tile] = bisect.Root(hashes)
		if ends {
			r.ends[tile] = bisect.Prove(hashes, uint32(len(hashes)-1))
		}
	})
	return r
}

// slices computes a tile and passes its words after each slice to f, until f returns false.
func (m *machine) slices(w *exact.Worker, op Op, t, tile uint32, values map[uint32]*result, f func(slice uint32, words []uint32) bool) {
	var acc []uint32
	in := make([][]uint32, 0, ReadsMax)
	for slice := range op.Slices(tile) {
		in = in[:0]
		for _, r := range op.Reads(tile, slice) {
			in = append(in, m.words(r, values))
		}
		acc = op.Step(w, tile, slice, acc, in)
		if len(acc) != op.Words(tile, slice) {
			panic(fmt.Sprintf("trace: operation %d, %s, makes %d words, not %d", t, op.Name(), len(acc), op.Words(tile, slice)))
		}
		if m.lie != nil {
			m.lie(t, tile, slice, acc)
		}
		if !f(slice, acc) {
			return
		}
	}
}

// words returns the words that a read names.
func (m *machine) words(r Read, values map[uint32]*result) []uint32 {
	switch r.Source {
	case Params:
		return chunk(m.src.Params, r.Index)
	case State:
		return chunk(m.src.State, r.Index)
	case Base:
		return chunk(m.src.Base, r.Index)
	case Tokens:
		return m.read[r.Index]
	}
	return values[r.Op].tiles[r.Index]
}

// chunk returns chunk i of a blob of floats.
func chunk(blob []float32, i uint32) []uint32 {
	from := int(i) * ChunkWords
	return Bits(blob[from:min(from+ChunkWords, len(blob))])
}

// Root returns the commitment to the whole trace: bisect.Root of the hashes of the operations.
func (t *Trace) Root() wire.Hash { return t.root }

// Last returns the hash of the last operation, which is the outcome, and the proof that it is the
// last one under Root.
func (t *Trace) Last() (leaf wire.Hash, proof []wire.Hash) {
	n := uint32(len(t.ops)) - 1
	return t.ops[n], bisect.Prove(t.ops, n)
}
