package distro

import (
	"fmt"

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
		// The highest bits nearly always tell.
		if readBits(body, b.bit+b.shape.bits-b.shape.lead, b.shape.lead) < b.shape.totalLead {
			continue
		}
		var code number
		readNumber(&code, body, b.bit, b.shape.bits, b.shape.words)
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
	sums := s.a[:b.shape.h*b.shape.w]
	clear(sums)
	b.count(sums, j.payloads, s)
	b.shape.inverse(w, sums, s.b)
	for row := range b.shape.h {
		x := j.params[b.offset+row*b.stride:][:b.shape.w]
		j.c.loop.SignStep(x, sums[row*b.shape.w:][:b.shape.w], j.keep, j.lr)
	}
}

// count adds up the votes of all payloads on a block. The sums are integers below 2^24, so exact in binary32 and the same in any order.
func (b *block) count(sums []float32, payloads [][]byte, s *scratch) {
	for len(payloads) > 0 {
		readings := s.readings[:min(len(s.readings), len(payloads))]
		for i := range readings {
			readNumber(&readings[i].rest, payloads[i][codec.HeaderLen:], b.bit, b.shape.bits, b.shape.words)
		}
		payloads = payloads[len(readings):]
		b.shape.decode(readings)
		for i := range readings {
			v := &readings[i].votes
			negative := v.negative
			for _, p := range v.positions[:v.n] {
				sums[p] += float32(1 - 2*int32(negative&1))
				negative >>= 1
			}
		}
	}
}
