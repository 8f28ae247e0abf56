package distro

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/exact"
)

// What an engine needs that transforms and picks elsewhere, on a device: where the blocks are, the
// bases, and the way from what is sent to a payload and back.

// A Grid is blocks of one size, in rows. Block (i, j) is number First + i*Across + j, j < Columns.
// It begins Offset + i*Rows*Stride + j*Cols in the flat gradient, with rows of Stride, and at State
// + i*Rows*Stride + j*Rows*Cols in the private state.
type Grid struct {
	Offset, State, Stride int
	Rows, Cols            int // of a block
	Down, Columns         int // blocks
	First, Across         int
}

// Grids returns all blocks. A grid ends where one of ends does, offsets in the flat gradient at
// which tensors begin.
func (c *Codec) Grids(ends []int) (grids []Grid) {
	open := 0 // the first grid that may go on
	for at := c.at(0); at.i < c.blocks; {
		if slices.Contains(ends, at.offset) {
			open = len(grids)
		}
		across := pieces(at.stride, c.cfg.Block)
		for first := at.i; at.i < first+across; at.move(at.i + at.left) {
			g := Grid{
				Offset: at.offset, State: at.state, Stride: at.stride, Rows: at.shape.h, Cols: at.shape.w,
				Down: 1, Columns: at.left, First: at.i, Across: across,
			}
			if i := slices.IndexFunc(grids[open:], g.continues); i >= 0 {
				grids[open+i].Down++
			} else {
				grids = append(grids, g)
			}
		}
	}
	return grids
}

// continues reports whether g, one row of blocks, is the next row of o.
func (g Grid) continues(o Grid) bool {
	next := o
	next.Offset, next.State, next.First, next.Down = o.Offset+o.Down*o.Rows*o.Stride, o.State+o.Down*o.Rows*o.Stride, o.First+o.Down*o.Across, 1
	return g == next
}

// Basis returns the basis of a side of n points, n*n numbers, row-major: coefficients = Basis *
// column.
func Basis(n int) []float32 { return newBasis(exact.NewWorker(exact.Kernels()[0]), n).matrix }

// Config returns the codec's settings.
func (c *Codec) Config() Config { return c.cfg }

// StateMax is the greatest magnitude of a state that Encode accepts.
const StateMax = stateMax

// None is a pick of nothing, and Minus the bit of a pick that says that its sign is minus. The
// other bits are the position in the block.
const (
	None  = 0xffff
	Minus = 0x8000
)

// PicksLen returns the number of picks of all blocks: an even number for each, at least TopK.
func (c *Codec) PicksLen() int { return c.blocks * c.picks() }

func (c *Codec) picks() int { return (c.cfg.TopK + 1) &^ 1 }

// Payload returns the payload of what was picked of each block, ascending and then None. It returns
// an error if no Encode picks that.
func (c *Codec) Payload(picks []uint16) ([]byte, error) {
	if len(picks) != c.PicksLen() {
		panic(fmt.Sprintf("distro: %d picks, want %d", len(picks), c.PicksLen()))
	}
	j := c.get()
	defer c.put(j)
	wrong := make([]bool, c.tasks())
	c.pool.Run(c.tasks(), func(task int) {
		var v subset.Signed
		for b := c.at(task * blocksPerTask); b.i < min((task+1)*blocksPerTask, c.blocks); b.next() {
			if !signed(&v, picks[b.i*c.picks():(b.i+1)*c.picks()], b.shape) {
				wrong[task] = true
				continue
			}
			code := b.shape.Code(&v)
			copy(j.codes[b.i*c.words:(b.i+1)*c.words], code[:])
		}
	})
	if i := slices.Index(wrong, true); i >= 0 {
		return nil, fmt.Errorf("distro: picks of a block from %d on are not ascending positions", i*blocksPerTask)
	}
	return c.appendPayload(nil, j.codes), nil
}

// signed sets v to picks, and reports whether they are ascending and of the shape.
func signed(v *subset.Signed, picks []uint16, s *shape) bool {
	v.N, v.Negative = 0, 0
	least := 0
	for i, p := range picks {
		if p == None {
			continue
		}
		at := int(p &^ Minus)
		if v.N < i || i >= s.K || at < least || at >= s.h*s.w {
			return false
		}
		v.Positions[i], v.N, least = uint16(at), i+1, at+1
		v.Negative |= uint64(p/Minus) << uint(i)
	}
	return true
}

// Picks is the inverse of Payload for blocks [from, to) of a payload that passes Check: it fills
// dst.
func (c *Codec) Picks(dst []uint16, payload []byte, from, to int) {
	const each = 64 // blocks that a worker takes at a time
	c.pool.Run((to-from+each-1)/each, func(task int) {
		var readings [subset.Readings]subset.Reading
		b := c.at(from + task*each)
		for i, end := b.i, min(from+(task+1)*each, to); i < end; {
			s, n := b.shape, 0
			for ; n < len(readings) && b.i < end && b.shape == s; n++ {
				s.Read(&readings[n], payload[codec.HeaderLen:], b.bit)
				b.next()
			}
			s.Decode(&c.loop, readings[:n])
			for k := range readings[:n] {
				fill(dst[(i-from+k)*c.picks():(i-from+k+1)*c.picks()], &readings[k].Set)
			}
			i += n
		}
	})
}

// fill sets picks to v.
func fill(picks []uint16, v *subset.Signed) {
	for k := range picks {
		picks[k] = None
		if k < v.N {
			picks[k] = v.Positions[k] | uint16(v.Negative>>uint(k)&1)*Minus
		}
	}
}

// ApplyBlock is Apply for the weights x of block i alone, row after row, and a set that passes
// CheckSet.
func (c *Codec) ApplyBlock(i int, x []float32, payloads [][]byte, lr float32) {
	j := c.get()
	defer c.put(j)
	alone := c.at(i).block
	alone.offset, alone.stride = 0, alone.shape.w
	j.params, j.payloads, j.keep, j.lr = x, payloads, codec.Keep(lr, c.cfg.WeightDecay), lr
	j.move(&alone, j.direction(exact.NewWorker(c.pool.Kernel()), &j.scratch[0], &alone))
}
