package distro

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// Check tells whether payload is canonical. See codec.Codec.
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
	for i := range c.blocks {
		b := &c.blocks[i]
		if !b.shape.Valid(body, b.bit) {
			return fmt.Errorf("the code of block %d stands for nothing", i)
		}
	}
	if unused := 8*len(body) - c.bits; subset.ReadBits(body, c.bits, unused) != 0 {
		return fmt.Errorf("the last %d bits are not zero", unused)
	}
	return nil
}

// Apply moves every weight by lr in the direction of the payloads' vote. See codec.Codec and the
// package comment.
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
	j := c.take()
	defer c.give(j)
	j.params, j.payloads, j.keep, j.lr = params, payloads, codec.Keep(lr, c.cfg.WeightDecay), lr
	c.pool.RunOn(c.tasks(), j.apply)
	return nil
}

// applyBlocks does the blocks of one task.
func (j *job) applyBlocks(w *exact.Worker, task int) {
	s := &j.scratch[w.Index()]
	for i := task * blocksPerTask; i < min((task+1)*blocksPerTask, len(j.c.blocks)); i++ {
		j.applyBlock(w, s, &j.c.blocks[i])
	}
}

func (j *job) applyBlock(w *exact.Worker, s *scratch, b *block) {
	shape := b.shape
	direction := s.a[:shape.h*shape.w]
	j.c.loop.Fetch(j.params[b.offset:], shape.h, shape.w, b.stride)
	if shape.byColumn != nil && j.c.loop.Sparse() && len(j.payloads)*shape.K <= len(direction)/sparseShare {
		sums := s.b[:shape.w*shape.rows.ld]
		j.count(b, sums, shape.byColumn, s)
		shape.inverseSparse(w, &j.c.loop, direction, sums, s.columns)
	} else {
		j.count(b, direction, shape.byRow, s)
		shape.inverse(w, direction, s.b)
	}
	for row := range shape.h {
		x := j.params[b.offset+row*b.stride:][:shape.w]
		j.c.loop.SignStep(x, direction[row*shape.w:][:shape.w], j.keep, j.lr)
	}
}

// sparseShare is one in how many coefficients may be voted on for the zeros to be worth leaving
// out: beyond, finding those that are not zero takes longer than multiplying all. It changes no
// bits.
const sparseShare = 3

// count adds up the votes of all payloads on a block, for a coefficient where place says. The sums
// are integers below 2^24, so exact in binary32 and the same in any order. Then it settles what
// they move.
func (j *job) count(b *block, sums []float32, place []uint16, s *scratch) {
	const one = 127 << 23 // the bits of 1
	clear(sums)
	for payloads := j.payloads; len(payloads) > 0; {
		n := min(len(s.readings), len(payloads))
		if n > vec.Numbers {
			n -= n % vec.Numbers // the others by themselves
		}
		readings := s.readings[:n]
		for i := range readings {
			b.shape.Read(&readings[i], payloads[i][codec.HeaderLen:], b.bit)
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
	j.c.cfg.settle(sums)
}

// settle holds down what many voted for.
func (c Config) settle(sums []float32) {
	if c.VotesMax == 0 {
		return
	}
	most := float32(c.VotesMax)
	for i, v := range sums {
		sums[i] = max(-most, min(v, most)) // never -0, as no sum is
	}
}
