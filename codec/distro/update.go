package distro

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
)

// What a set of payloads does to the parameters is one sign a weight, and here and there nothing:
// where nobody votes, and where the votes cancel. Its encoding, whatever the number of payloads, is
//
//	offset  bytes
//	0       12     header: magic "eDU1", layout and the setting Block
//	12      signs  of each block, in the order of the codes of a payload: a bit for each weight,
//	               row-major, lowest bit of a byte first, 1 to step up; then zeros to the end of
//	               the byte
//	...     rest   runs of weights that only decay, in that order: the distance from the end of the
//	               run before and the length, uvarints of the fewest bytes; lengths are above 0, and
//	               so are distances after the first. The signs of these weights are 0.
//
// No two encodings mean the same update.

const updateMagic = "eDU1" // entrain, DisTrO's update, version 1

var _ codec.Followable = (*Codec)(nil)

// A span is the positions [from, to) of weights in the order of the blocks.
type span struct{ from, to int }

// UpdateLen implements [codec.Followable].
func (c *Codec) UpdateLen() int { return codec.HeaderLen + c.signs }

// UpdateMax implements [codec.Followable]: every other weight only decays, and a run of one after
// one takes two bytes.
func (c *Codec) UpdateMax() int { return c.UpdateLen() + c.n + 1 }

// Update implements [codec.Followable].
func (c *Codec) Update(dst []byte, payloads [][]byte) ([]byte, error) {
	if len(payloads) == 0 {
		return dst, errors.New("distro: an update of no payloads")
	}
	if err := codec.CheckSet(c.check, payloads, 0, 0); err != nil {
		return dst, fmt.Errorf("distro: %w", err)
	}
	j := c.get()
	defer c.put(j)
	start := len(dst)
	dst = slices.Grow(dst, c.UpdateLen())[:start+c.UpdateLen()]
	j.signs = dst[start+copy(dst[start:], c.update[:]):]
	j.payloads, j.zeros = payloads, make([][]span, c.tasks())
	c.pool.RunOn(c.tasks(), func(w *exact.Worker, task int) {
		s := &j.scratch[w.Index()]
		j.each(s, task, func(b *block) {
			j.zeros[task] = pack(j.signs[b.signs:], j.direction(w, s, b), b.state, j.zeros[task])
		})
	})
	return appendZeros(dst, j.zeros), nil
}

// pack writes the signs of a block whose first weight has position at, and appends the runs of
// zeros to those of the blocks before.
func pack(signs []byte, direction []float32, at int, zeros []span) []span {
	for i := 0; i < len(direction); i += 8 {
		up := byte(0)
		for k, x := range direction[i:min(i+8, len(direction))] {
			bits := math.Float32bits(x)
			if bits<<1 != 0 {
				up |= byte(bits>>31) << k
				continue
			}
			if n := len(zeros); n > 0 && zeros[n-1].to == at+i+k {
				zeros[n-1].to++
			} else {
				zeros = append(zeros, span{at + i + k, at + i + k + 1})
			}
		}
		signs[i/8] = up
	}
	return zeros
}

// appendZeros appends runs of zeros, joined where two tasks meet.
func appendZeros(dst []byte, tasks [][]span) []byte {
	end := 0 // of the run before
	var open span
	flush := func() {
		if open.to > open.from {
			dst = binary.AppendUvarint(dst, uint64(open.from-end))
			dst = binary.AppendUvarint(dst, uint64(open.to-open.from))
			end = open.to
		}
	}
	for _, zeros := range tasks {
		for _, z := range zeros {
			if z.from == open.to && open.to > open.from {
				open.to = z.to
				continue
			}
			flush()
			open = z
		}
	}
	flush()
	return dst
}

// CheckUpdate implements [codec.Followable].
func (c *Codec) CheckUpdate(update []byte) error {
	_, err := c.parseUpdate(update)
	return err
}

// parseUpdate checks an update and returns its runs of zeros.
func (c *Codec) parseUpdate(update []byte) (zeros []span, err error) {
	if len(update) < c.UpdateLen() || len(update) > c.UpdateMax() {
		return nil, fmt.Errorf("distro: an update has %d bytes, want %d to %d", len(update), c.UpdateLen(), c.UpdateMax())
	}
	if err := c.update.Check(update[:c.UpdateLen()], c.UpdateLen()); err != nil {
		return nil, fmt.Errorf("distro: update: %w", err)
	}
	signs, rest := update[codec.HeaderLen:c.UpdateLen()], update[c.UpdateLen():]
	if zeros, err = parseZeros(rest, c.n); err != nil {
		return nil, err
	}
	for b := c.at(0); b.i < c.blocks; b.move(b.i + b.left) {
		n := b.shape.h * b.shape.w
		for i := 0; i < b.left && n%8 != 0; i++ {
			if signs[b.signs+i*b.shape.bytes()+n/8]>>(n%8) != 0 {
				return nil, fmt.Errorf("distro: update: the last bits of block %d are not zero", b.i+i)
			}
		}
	}
	b := c.at(0)
	for _, z := range zeros {
		for at := z.from; at < z.to; at++ {
			for at >= b.end() {
				b.next()
			}
			if k := at - b.state; signs[b.signs+k/8]>>(k%8)&1 != 0 {
				return nil, fmt.Errorf("distro: update: weight %d both steps and only decays", at)
			}
		}
	}
	return zeros, nil
}

// parseZeros reads the runs of weights that only decay, of n weights.
func parseZeros(b []byte, n int) (zeros []span, err error) {
	for end := 0; len(b) > 0; {
		gap, after := uvarint(b)
		length, after := uvarint(after)
		if length == 0 || gap == 0 && end > 0 || gap > uint64(n-end) || length > uint64(n-end)-gap {
			return nil, fmt.Errorf("distro: update: run %d of weights that only decay is malformed", len(zeros))
		}
		b, end = after, end+int(gap+length)
		zeros = append(zeros, span{end - int(length), end})
	}
	return zeros, nil
}

// uvarint returns the uvarint at the beginning of b and what follows: 0 and nothing if it is cut
// off or has more bytes than it needs.
func uvarint(b []byte) (v uint64, rest []byte) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, nil
	}
	return v, b[n:]
}

// end returns the position after the block's last weight.
func (b *block) end() int { return b.state + b.shape.h*b.shape.w }

// Follow implements [codec.Followable].
func (c *Codec) Follow(params []float32, update []byte, lr float32) error {
	if len(params) != c.n {
		panic(fmt.Sprintf("distro: %d parameters for a layout of %d", len(params), c.n))
	}
	if err := codec.CheckLR(lr, c.cfg.WeightDecay); err != nil {
		return fmt.Errorf("distro: %w", err)
	}
	zeros, err := c.parseUpdate(update)
	if err != nil {
		return err
	}
	j := c.get()
	defer c.put(j)
	signs := update[codec.HeaderLen:]
	j.params, j.keep, j.lr = params, codec.Keep(lr, c.cfg.WeightDecay), lr
	c.pool.RunOn(c.tasks(), func(w *exact.Worker, task int) {
		s := &j.scratch[w.Index()]
		j.each(s, task, func(b *block) {
			direction := s.a[:b.shape.h*b.shape.w]
			unpack(direction, signs[b.signs:])
			first := sort.Search(len(zeros), func(i int) bool { return zeros[i].to > b.state })
			for _, z := range zeros[first:] {
				if z.from >= b.end() {
					break
				}
				clear(direction[max(z.from, b.state)-b.state : min(z.to, b.end())-b.state])
			}
			j.move(b, direction)
		})
	})
	return nil
}

// unpack is the inverse of pack for a block without zeros: 1 and -1.
func unpack(direction []float32, signs []byte) {
	const one = 127 << 23 // the bits of 1
	for i := range direction {
		direction[i] = math.Float32frombits(one | uint32(signs[i/8]>>(i%8))<<31)
	}
}
