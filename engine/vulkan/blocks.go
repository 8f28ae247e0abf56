package vulkan

import (
	"fmt"
	"math"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/exact"
)

// blocks is codec distro on a device. The processors only turn what is picked of each block into a
// payload, and payloads into picks.
type blocks struct {
	*coder
	c     *distro.Codec
	grids []distro.Grid
	each  int // words that a block's picks take

	bases        map[int]gpu.Words
	work, spare  gpu.Words // a piece of a grid
	picks, votes gpu.Words
}

// workFloats bounds the piece of a grid, or the chunks, that are computed at once. Tests make it
// small.
var workFloats = 4 << 20

// votesWords bounds the picks that are sent at once, unless those of one payload are more.
const votesWords = 1 << 20

func newBlocks(of *coder, c *distro.Codec, ends []int, alloc func(n int) gpu.Words) *blocks {
	d := &blocks{coder: of, c: c, bases: make(map[int]gpu.Words)}
	d.grids = c.Grids(ends)
	work, votes := 0, 0
	for _, g := range d.grids {
		for _, side := range []int{g.Rows, g.Cols} {
			if _, ok := d.bases[side]; !ok {
				d.bases[side] = alloc(side * side)
			}
		}
	}
	d.each = c.PicksLen() / 2 / max(c.Blocks(), 1)
	d.pieces(func(g distro.Grid, b kernel.Blocks) {
		work, votes = max(work, b.Len()), max(votes, d.stride(g))
	})
	d.work, d.spare = alloc(work), alloc(work)
	d.picks, d.votes = alloc(c.PicksLen()/2), alloc(max(votes, min(votesWords, c.PicksLen()/2)))
	return d
}

// write writes what never changes.
func (d *blocks) write() error {
	for side, at := range d.bases {
		if err := gpu.Write(at, distro.Basis(side)); err != nil {
			return err
		}
	}
	return nil
}

// use makes c the codec, and reports whether it is the same.
func (d *blocks) use(c codec.Codec) bool {
	other, ok := c.(*distro.Codec)
	if !ok || other.Header() != d.c.Header() || other.Config() != d.c.Config() {
		return false
	}
	d.c = other
	return true
}

// pieces calls f for all blocks, in pieces of grids that the work space holds.
func (d *blocks) pieces(f func(g distro.Grid, b kernel.Blocks)) {
	for _, g := range d.grids {
		row := g.Columns * g.Rows * g.Cols
		most := max(1, min(workFloats/row, 65535/g.Columns))
		for left := g.Down; left > 0; left -= g.Down {
			g.Down = min(left, most)
			f(g, kernel.Blocks{Rows: g.Rows, Cols: g.Cols, Stride: g.Stride, Down: g.Down, Columns: g.Columns})
			g.Offset, g.State, g.First = g.Offset+g.Down*g.Rows*g.Stride, g.State+g.Down*g.Rows*g.Stride, g.First+g.Down*g.Across
		}
	}
}

// blocksOf returns the number of blocks from the first to the last of a grid, and stride the words
// of their picks.
func blocksOf(g distro.Grid) int           { return (g.Down-1)*g.Across + g.Columns }
func (d *blocks) stride(g distro.Grid) int { return blocksOf(g) * d.each }

// encode updates the state by the gradient times step, and returns the payload. state is what the
// host knows of the device's; only a sample is looked at.
func (d *blocks) encode(state []float32, step float32) ([]byte, error) {
	s, err := d.sample(state)
	if err != nil {
		return nil, err
	}
	cfg := d.c.Config()
	if err := d.k.Device.Run(func(c *gpu.Commands) {
		c.Clear(d.most)
		d.pieces(func(g distro.Grid, b kernel.Blocks) {
			of := at(d.state, g.State)
			d.k.DCT(c, d.work, d.spare, at(d.grad, g.Offset), d.bases[b.Rows], d.bases[b.Cols], b)
			d.k.Momentum(c, of, d.work, d.most, b, cfg.Decay, step)
			d.k.Pick(c, of, d.picks.At(g.First*d.each), gpu.Words{}, b, cfg.TopK, d.each, g.Across)
			c.Cut()
		})
	}); err != nil {
		return nil, err
	}
	if err := d.checkState(distro.StateMax); err != nil {
		return nil, fmt.Errorf("distro: %w", err)
	}
	picks, err := readPicks(d.picks)
	if err != nil {
		return nil, err
	}
	if err := d.check(s, picks, step); err != nil {
		return nil, err
	}
	payload, err := d.c.Payload(picks)
	if err != nil {
		return nil, differs("vulkan: the device sends what no processor would: " + err.Error())
	}
	return payload, nil
}

// A sampled is a block of the gradient and of the state.
type sampled struct {
	block       int
	grad, state []float32
}

// sample draws a block, whose state must be the host's.
func (d *blocks) sample(state []float32) (s sampled, err error) {
	s.block = int(d.random.Uint64n(uint64(d.c.Blocks())))
	b := d.c.Block(s.block)
	s.grad, s.state = make([]float32, b.Rows*b.Cols), make([]float32, b.Rows*b.Cols)
	if err := gpu.ReadRows(s.grad, at(d.grad, b.Offset), b.Stride, b.Cols); err != nil {
		return s, err
	}
	if err := gpu.Read(s.state, at(d.state, b.State)); err != nil {
		return s, err
	}
	return s, same("a state that it kept", s.state, state[b.State:b.State+len(s.state)])
}

// check encodes the sample again on the processor.
func (d *blocks) check(s sampled, picks []uint16, step float32) error {
	b, w := d.c.Block(s.block), exact.NewWorker(exact.Kernels()[0])
	x, y := make([]float32, len(s.grad)), make([]float32, len(s.grad))
	d.c.Columns(w, s.block, x, s.grad, 0, b.Cols)
	d.c.Rows(w, s.block, y, x, 0, b.Rows)
	d.c.Momentum(s.state, y, step)
	whole := slices.Clone(s.state)
	d.c.Code(s.block, s.state)
	if err := gpu.Read(x, at(d.state, b.State)); err != nil {
		return err
	}
	if err := same("a state", x, s.state); err != nil {
		return err
	}
	for _, p := range picks[2*d.each*s.block:][:2*d.each] {
		if i := int(p &^ distro.Minus); p != distro.None && i < len(whole) && math.Signbit(float64(whole[i])) != (p >= distro.Minus) {
			return differs(fmt.Sprintf("vulkan: the device sends a different sign than the processor, of coefficient %d of block %d", i, s.block))
		}
	}
	return nil
}

// apply updates the parameters by a set that Apply of the codec takes. params are what the host
// knows of them; only a sample is looked at.
func (d *blocks) apply(params []float32, payloads [][]byte, lr float32) error {
	if len(payloads) == 0 {
		return nil
	}
	cfg := d.c.Config()
	block := int(d.random.Uint64n(uint64(d.c.Blocks())))
	b := d.c.Block(block)
	want, got := make([]float32, b.Rows*b.Cols), make([]float32, b.Rows*b.Cols)
	if err := gpu.ReadRows(want, at(d.params, b.Offset), b.Stride, b.Cols); err != nil {
		return err
	}
	for i := range b.Rows {
		if err := same("parameters that it kept", want[i*b.Cols:(i+1)*b.Cols], params[b.Offset+i*b.Stride:][:b.Cols]); err != nil {
			return err
		}
	}
	var failed error
	d.pieces(func(g distro.Grid, b kernel.Blocks) {
		if failed == nil {
			failed = d.applyPiece(g, b, payloads, codec.Keep(lr, cfg.WeightDecay), lr, cfg.VotesMax)
		}
	})
	if failed != nil {
		return failed
	}
	if err := gpu.ReadRows(got, at(d.params, b.Offset), b.Stride, b.Cols); err != nil {
		return err
	}
	d.c.ApplyBlock(block, want, payloads, lr)
	return same("parameters of a set", got, want)
}

func (d *blocks) applyPiece(g distro.Grid, b kernel.Blocks, payloads [][]byte, keep, lr float32, votesMax int) error {
	count, stride := blocksOf(g), d.stride(g)
	picks := make([]uint16, 2*stride)
	if err := d.k.Device.Run(func(c *gpu.Commands) { c.Clear(d.work.First(b.Len())) }); err != nil {
		return err
	}
	for len(payloads) > 0 {
		n := min(max(d.votes.Len/stride, 1), len(payloads))
		words := make([]uint32, 0, n*stride)
		for _, p := range payloads[:n] {
			d.c.Picks(picks, p, g.First, g.First+count)
			for i := range stride {
				words = append(words, uint32(picks[2*i])|uint32(picks[2*i+1])<<16)
			}
		}
		if err := gpu.Write(d.votes, words); err != nil {
			return err
		}
		if err := d.k.Device.Run(func(c *gpu.Commands) { d.k.Votes(c, d.work, d.votes, b, n, d.each, g.Across, stride) }); err != nil {
			return err
		}
		payloads = payloads[n:]
	}
	return d.k.Device.Run(func(c *gpu.Commands) {
		direction := d.spare
		if b.Rows > 1 {
			direction = d.work
		}
		d.k.Limit(c, d.work, b, votesMax)
		d.k.Inverse(c, direction, d.spare, d.work, d.bases[b.Rows], d.bases[b.Cols], b)
		d.k.SignStep(c, at(d.params, g.Offset), direction, b, keep, lr)
	})
}
