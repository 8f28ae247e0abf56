package distro

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
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
		code := readNumber(body, b.bit, b.shape.bits, b.shape.words)
		if !code.less(&b.shape.total, b.shape.words) {
			return fmt.Errorf("the code of block %d stands for nothing", i)
		}
	}
	if unused := 8*len(body) - c.bits; readBits(body, c.bits, unused) != 0 {
		return fmt.Errorf("the last %d bits are not zero", unused)
	}
	return nil
}

// Apply moves every weight by lr in the direction of the payloads' vote. See codec.Codec and the package comment.
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
	keep := codec.Keep(lr, c.cfg.WeightDecay)
	c.run(func(w *exact.Worker, s *scratch, i int) {
		b := &c.blocks[i]
		n := b.shape.h * b.shape.w
		sums := s.a[:n]
		clear(sums)
		b.count(sums, payloads, &s.votes)
		b.shape.inverse(w, sums, s.b)
		for row := range b.shape.h {
			x := params[b.offset+row*b.stride:][:b.shape.w]
			signStep(x, sums[row*b.shape.w:][:b.shape.w], keep, lr)
		}
	})
	return nil
}

// count adds up the votes of all payloads on a block. The sums are integers below 2^24, so exact in binary32 and the same in any order.
func (b *block) count(sums []float32, payloads [][]byte, v *votes) {
	for _, p := range payloads {
		code := readNumber(p[codec.HeaderLen:], b.bit, b.shape.bits, b.shape.words)
		b.shape.decode(&code, v)
		for i, p := range v.positions[:v.n] {
			sums[p] += 1 - 2*float32(v.negative>>uint(i)&1)
		}
	}
}

// signStep does x = x*keep - lr*sign(direction), with sign(0) = 0. Directions are as good as random, so it does without a branch on them: the
// step has the bits of lr with the sign of the direction, or none where all bits of the direction but its sign are 0.
func signStep(x, direction []float32, keep, lr float32) {
	const sign = 1 << 31
	direction = direction[:len(x)]
	rate := math.Float32bits(lr)
	for i, v := range x {
		d := math.Float32bits(direction[i])
		moves := uint32(int32(-(d &^ sign)) >> 31) // all ones if the direction is not 0
		x[i] = float32(v*keep) - math.Float32frombits((rate|d&sign)&moves)
	}
}
