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
func (c *Codec) SlicesMax() int { return len(c.blocks) }

// part returns the blocks of slice i of n.
func (c *Codec) part(i, n int) []block {
	if n < 1 || n > len(c.blocks) || i < 0 || i >= n {
		panic(fmt.Sprintf("distro: slice %d of %d of %d blocks", i, n, len(c.blocks)))
	}
	return c.blocks[len(c.blocks)*i/n : len(c.blocks)*(i+1)/n]
}

// SliceRange implements [codec.Followable].
func (c *Codec) SliceRange(i, n int) (from, to int) {
	part := c.part(i, n)
	last := &part[len(part)-1]
	return codec.HeaderLen + part[0].bit/8, codec.HeaderLen + (last.bit+last.shape.Bits+7)/8
}

// sliceSize returns the numbers of weights and of bytes of signs of consecutive blocks.
func sliceSize(part []block) (weights, signs int) {
	last := &part[len(part)-1]
	return last.end() - part[0].state, last.signs + (last.shape.h*last.shape.w+7)/8 - part[0].signs
}

// UpdateSliceMax implements [codec.Followable]. See UpdateMax.
func (c *Codec) UpdateSliceMax(i, n int) int {
	weights, signs := sliceSize(c.part(i, n))
	return signs + weights + 1
}

// UpdateSlice implements [codec.Followable].
func (c *Codec) UpdateSlice(dst []byte, ranges [][]byte, i, n int) ([]byte, error) {
	from, to := c.SliceRange(i, n)
	if err := codec.CheckRanges(ranges, to-from); err != nil {
		return dst, fmt.Errorf("distro: %w", err)
	}
	part := c.part(i, n)
	_, signs := sliceSize(part)
	j := c.get()
	defer c.put(j)
	start := len(dst)
	dst = slices.Grow(dst, signs)[:start+signs]
	clear(dst[start:])
	j.payloads, j.ranges, j.skip = ranges, true, 8*(from-codec.HeaderLen)
	zeros := make([][]span, (len(part)+blocksPerTask-1)/blocksPerTask)
	c.pool.RunOn(len(zeros), func(w *exact.Worker, task int) {
		s := &j.scratch[w.Index()]
		for k := task * blocksPerTask; k < min((task+1)*blocksPerTask, len(part)); k++ {
			b := &part[k]
			zeros[task] = pack(dst[start+b.signs-part[0].signs:], j.direction(w, s, b), b.state-part[0].state, zeros[task])
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
	for i, p := range parts {
		part := c.part(i, len(parts))
		weights, signs := sliceSize(part)
		if len(p) < signs || len(p) > c.UpdateSliceMax(i, len(parts)) {
			return dst, fmt.Errorf("distro: slice %d of an update has %d bytes, want %d to %d", i, len(p), signs, c.UpdateSliceMax(i, len(parts)))
		}
		out = append(out, p[:signs]...)
		var err error
		if zeros[i], err = parseZeros(p[signs:], weights); err != nil {
			return dst, err
		}
		for k := range zeros[i] {
			zeros[i][k].from += part[0].state
			zeros[i][k].to += part[0].state
		}
	}
	out = appendZeros(out, zeros)
	if err := c.CheckUpdate(out); err != nil {
		return dst, err
	}
	return append(dst, out...), nil
}
