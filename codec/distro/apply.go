package distro

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// Check returns an error unless payload is canonical. See codec.Codec.
func (c *Codec) Check(payload []byte) error {
	if err := c.check(payload); err != nil {
		return fmt.Errorf("distro: %w", err)
	}
	return nil
}

func (c *Codec) check(payload []byte) error {
	if err := c.header.Check(payload, c.PayloadMax()); err != nil {
		return err
	}
	body := payload[codec.HeaderLen:]
	for b := c.at(0); b.i < c.blocks; b.move(b.i + b.left) {
		for i := range b.left {
			if !b.shape.Valid(body, b.bit+i*b.shape.Bits) {
				return fmt.Errorf("the code of block %d is out of range", b.i+i)
			}
		}
	}
	if unused := 8*len(body) - c.bits; subset.ReadBits(body, c.bits, unused) != 0 {
		return fmt.Errorf("the last %d bits are not zero", unused)
	}
	return nil
}

// Apply steps every weight by lr in the direction that the payloads vote for. See codec.Codec and
// the package comment.
func (c *Codec) Apply(params []float32, payloads [][]byte, lr float32) error {
	if len(params) != c.n {
		panic(fmt.Sprintf("distro: %d parameters for a layout of %d", len(params), c.n))
	}
	if err := codec.CheckSet(c.check, payloads, lr, c.cfg.WeightDecay); err != nil {
		return fmt.Errorf("distro: %w", err)
	}
	if len(payloads) == 0 {
		return nil
	}
	j := c.get()
	defer c.put(j)
	j.params, j.payloads, j.keep, j.lr = params, payloads, codec.Keep(lr, c.cfg.WeightDecay), lr
	c.pool.RunOn(c.tasks(), j.apply)
	return nil
}

// applyBlocks applies the payloads to the blocks of one task.
func (j *job) applyBlocks(w *exact.Worker, task int) {
	s := &j.scratch[w.Index()]
	j.each(s, task, func(b *block) {
		j.c.loop.Fetch(j.params[b.offset:], b.shape.h, b.shape.w, b.stride)
		j.move(b, j.direction(w, s, b))
	})
}

// direction returns the inverse DCT of the votes on a block, in s.
func (j *job) direction(w *exact.Worker, s *scratch, b *block) []float32 {
	shape := b.shape
	direction := s.a[:shape.h*shape.w]
	if shape.byColumn != nil && j.c.loop.Sparse() && len(j.payloads)*shape.K <= len(direction)/sparseShare {
		sums := s.b[:shape.w*shape.rows.ld]
		j.count(b, sums, shape.byColumn, s)
		shape.inverseSparse(w, &j.c.loop, direction, sums, s.columns)
	} else {
		j.count(b, direction, shape.byRow, s)
		shape.inverse(w, direction, s.b)
	}
	return direction
}

// move steps the weights of a block against the signs of its direction.
func (j *job) move(b *block, direction []float32) {
	shape := b.shape
	for row := range shape.h {
		x := j.params[b.offset+row*b.stride:][:shape.w]
		j.c.loop.SignStep(x, direction[row*shape.w:][:shape.w], j.keep, j.lr)
	}
}

// sparseShare is the reciprocal of the part of coefficients with votes up to which inverseSparse is
// faster than inverse. It does not affect results.
const sparseShare = 3

// count sums the votes of all payloads on a block; place maps positions to indexes of sums. Sums
// are integers below 2^24, exact in binary32 in any order. count then limits them by VotesMax.
func (j *job) count(b *block, sums []float32, place []uint16, s *scratch) {
	const one = 127 << 23 // the bits of 1
	clear(sums)
	payloads, header, bit := j.payloads, codec.HeaderLen, b.bit
	if j.ranges {
		header, bit = 0, b.bit-j.skip
		s.valid = s.valid[:0]
		for _, p := range payloads {
			if b.shape.Valid(p, bit) {
				s.valid = append(s.valid, p)
			}
		}
		payloads = s.valid
	}
	for len(payloads) > 0 {
		n := min(len(s.readings), len(payloads))
		if n > vec.Numbers {
			n -= n % vec.Numbers // the rest in another iteration
		}
		readings := s.readings[:n]
		for i := range readings {
			b.shape.Read(&readings[i], payloads[i][header:], bit)
		}
		payloads = payloads[len(readings):]
		b.shape.Decode(&j.c.loop, readings)
		for i := range readings {
			v := &readings[i].Set
			negative := v.Negative
			for _, p := range v.Positions[:v.N] {
				sums[place[p]] += math.Float32frombits(one | uint32(negative)<<31) // 1 or -1
				negative >>= 1
			}
		}
	}
	j.c.cfg.limit(sums)
}

// limit clamps sums to VotesMax.
func (c Config) limit(sums []float32) {
	if c.VotesMax == 0 {
		return
	}
	most := float32(c.VotesMax)
	for i, v := range sums {
		sums[i] = max(-most, min(v, most)) // never -0, because no sum is
	}
}
