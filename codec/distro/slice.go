package distro

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
)

// Votes are integers, and each block's code is in its own place of a payload. So an update can be
// made in slices of consecutive blocks, by members that have only the bytes of these blocks' codes
// of all payloads, and the slices have the same bits as the whole. A slice is encoded as an update
// without header: the signs of its blocks, then the runs of weights that only decay, counted from
// its first weight.

// SlicesMax implements [codec.Followable].
func (c *Codec) SlicesMax() int { return c.blocks }

// A part is consecutive blocks: the first one, and the last.
type part struct{ first, last cursor }

// part returns slice i of n.
func (c *Codec) part(i, n int) part {
	if n < 1 || n > c.blocks || i < 0 || i >= n {
		panic(fmt.Sprintf("distro: slice %d of %d of %d blocks", i, n, c.blocks))
	}
	return part{c.at(c.blocks * i / n), c.at(c.blocks*(i+1)/n - 1)}
}

// blocks returns how many they are.
func (p *part) blocks() int { return p.last.i + 1 - p.first.i }

// SliceRange implements [codec.Followable].
func (c *Codec) SliceRange(i, n int) (from, to int) {
	p := c.part(i, n)
	return codec.HeaderLen + p.first.bit/8, codec.HeaderLen + (p.last.bit+p.last.shape.Bits+7)/8
}

// size returns the numbers of weights and of bytes of signs.
func (p *part) size() (weights, signs int) {
	return p.last.end() - p.first.state, p.last.signs + p.last.shape.bytes() - p.first.signs
}

// UpdateSliceMax implements [codec.Followable]. See UpdateMax.
func (c *Codec) UpdateSliceMax(i, n int) int {
	p := c.part(i, n)
	weights, signs := p.size()
	return signs + weights + 1
}

// UpdateSlice implements [codec.Followable].
func (c *Codec) UpdateSlice(dst []byte, ranges [][]byte, i, n int) ([]byte, error) {
	from, to := c.SliceRange(i, n)
	if err := codec.CheckRanges(ranges, to-from); err != nil {
		return dst, fmt.Errorf("distro: %w", err)
	}
	p := c.part(i, n)
	_, signs := p.size()
	j := c.get()
	defer c.put(j)
	start := len(dst)
	dst = slices.Grow(dst, signs)[:start+signs]
	clear(dst[start:])
	j.payloads, j.ranges, j.skip = ranges, true, 8*(from-codec.HeaderLen)
	zeros := make([][]span, (p.blocks()+blocksPerTask-1)/blocksPerTask)
	c.pool.RunOn(len(zeros), func(w *exact.Worker, task int) {
		s := &j.scratch[w.Index()]
		from := p.first.i + task*blocksPerTask
		for b := c.at(from); b.i < min(from+blocksPerTask, p.last.i+1); b.next() {
			zeros[task] = pack(dst[start+b.signs-p.first.signs:], j.direction(w, s, &b.block), b.state-p.first.state, zeros[task])
		}
	})
	return appendZeros(dst, zeros), nil
}

// JoinUpdate implements [codec.Followable].
func (c *Codec) JoinUpdate(dst []byte, parts [][]byte) ([]byte, error) {
	if len(parts) == 0 || len(parts) > c.SlicesMax() {
		return dst, fmt.Errorf("distro: an update of %d slices, want 1 to %d", len(parts), c.SlicesMax())
	}
	out := append(make([]byte, 0, c.UpdateLen()), c.update[:]...)
	zeros := make([][]span, len(parts))
	for i, b := range parts {
		p := c.part(i, len(parts))
		weights, signs := p.size()
		if len(b) < signs || len(b) > c.UpdateSliceMax(i, len(parts)) {
			return dst, fmt.Errorf("distro: slice %d of an update has %d bytes, want %d to %d", i, len(b), signs, c.UpdateSliceMax(i, len(parts)))
		}
		out = append(out, b[:signs]...)
		var err error
		if zeros[i], err = parseZeros(b[signs:], weights); err != nil {
			return dst, err
		}
		for k := range zeros[i] {
			zeros[i][k].from += p.first.state
			zeros[i][k].to += p.first.state
		}
	}
	out = appendZeros(out, zeros)
	if err := c.CheckUpdate(out); err != nil {
		return dst, err
	}
	return append(dst, out...), nil
}
