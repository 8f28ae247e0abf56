package sparseloco

import (
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
)

// A group's means depend on its own messages only, which lie together in a payload. So an update
// can be made in slices of consecutive groups, by members that have only those bytes of all
// payloads. A slice is encoded as an update without header.

// SlicesMax implements [codec.Followable].
func (f Followable) SlicesMax() int { return f.groups() }

// part returns the chunks of slice i of n.
func (f Followable) part(i, n int) []chunk {
	groups := f.groups()
	if n < 1 || n > groups || i < 0 || i >= n {
		panic(fmt.Sprintf("sparseloco: slice %d of %d of %d groups", i, n, groups))
	}
	return f.chunks[groups*i/n*f.cfg.ClipChunks : min(groups*(i+1)/n*f.cfg.ClipChunks, len(f.chunks))]
}

// SliceRange implements [codec.Followable].
func (f Followable) SliceRange(i, n int) (from, to int) {
	part := f.part(i, n)
	last := &part[len(part)-1]
	return codec.HeaderLen + part[0].bit/8, codec.HeaderLen + (last.bit+last.bits()+7)/8
}

// UpdateSliceMax implements [codec.Followable]. All slices i of n have that length.
func (f Followable) UpdateSliceMax(i, n int) int {
	part := f.part(i, n)
	last := &part[len(part)-1]
	return last.at + last.meansLen() - part[0].at
}

// UpdateSlice implements [codec.Followable]. A chunk that is malformed counts as one that sends
// nothing.
func (f Followable) UpdateSlice(dst []byte, ranges [][]byte, i, n int) ([]byte, error) {
	from, to := f.SliceRange(i, n)
	if err := codec.CheckRanges(ranges, to-from); err != nil {
		return dst, fmt.Errorf("sparseloco: %w", err)
	}
	start, size := len(dst), f.UpdateSliceMax(i, n)
	dst = slices.Grow(dst, size)[:start+size]
	j := f.get()
	defer f.put(j)
	j.payloads, j.ranges, j.skip = ranges, true, 8*(from-codec.HeaderLen)
	j.write(dst[start:], f.part(i, n))
	return dst, nil
}

// write writes the means of consecutive groups.
func (j *job) write(out []byte, chunks []chunk) {
	each := j.c.cfg.ClipChunks
	j.c.pool.RunOn((len(chunks)+each-1)/each, func(w *exact.Worker, i int) {
		group := chunks[i*each : min((i+1)*each, len(chunks))]
		j.average(&j.scratch[w.Index()], group, func(k *chunk, means []float32) { pack(out[k.at-chunks[0].at:][:k.meansLen()], means) })
	})
}

// JoinUpdate implements [codec.Followable].
func (f Followable) JoinUpdate(dst []byte, parts [][]byte) ([]byte, error) {
	if len(parts) == 0 || len(parts) > f.SlicesMax() {
		return dst, fmt.Errorf("sparseloco: an update of %d slices, want 1 to %d", len(parts), f.SlicesMax())
	}
	for i, p := range parts {
		if want := f.UpdateSliceMax(i, len(parts)); len(p) != want {
			return dst, fmt.Errorf("sparseloco: slice %d of an update has %d bytes, want %d", i, len(p), want)
		}
		if err := f.checkMeans(p, f.part(i, len(parts))); err != nil {
			return dst, err
		}
	}
	dst = append(slices.Grow(dst, f.UpdateLen()), f.update[:]...)
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return dst, nil
}
