package distro

import (
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
)

// Encode adds the gradient to the momentum in state, appends the payload that sends its largest coefficients, and clears those. See
// codec.Codec and the package comment.
func (c *Codec) Encode(dst []byte, state, grad []float32, lr float32) ([]byte, error) {
	if len(state) != c.StateLen() || len(grad) != c.n {
		panic(fmt.Sprintf("distro: state of %d and gradient of %d elements for a layout of %d", len(state), len(grad), c.n))
	}
	if err := codec.CheckLR(lr, c.cfg.WeightDecay); err != nil {
		return dst, fmt.Errorf("distro: %w", err)
	}
	scale, err := codec.Clip(c.pool, grad, c.cfg.ClipNorm)
	if err != nil {
		return dst, fmt.Errorf("distro: %w", err)
	}
	if err := checkState(state); err != nil {
		return dst, fmt.Errorf("distro: %w", err)
	}
	codes := make([]uint64, len(c.blocks)*c.words)
	step := float32(lr * scale)
	c.run(func(w *exact.Worker, s *scratch, b int) {
		code := c.encodeBlock(w, s, &c.blocks[b], state, grad, step)
		copy(codes[b*c.words:(b+1)*c.words], code[:])
	})
	return c.appendPayload(dst, codes), nil
}

// encodeBlock does one block: momentum = decay*momentum + step*DCT(gradient), then takes the largest coefficients out of it.
func (c *Codec) encodeBlock(w *exact.Worker, s *scratch, b *block, state, grad []float32, step float32) number {
	n := b.shape.h * b.shape.w
	coefficients, momentum := s.a[:n], state[b.state:b.state+n]
	b.shape.forward(w, coefficients, grad[b.offset:], b.stride, s.b)
	best := s.best[:0]
	var lowest uint64 // only what is above may enter best
	for i, x := range coefficients {
		m := float32(c.cfg.Decay*momentum[i]) + float32(step*x)
		momentum[i] = m
		// Magnitudes of binary32 are ordered as their bits are. Below them, the complement of the position lets the lower position win a tie.
		magnitude := math.Float32bits(m) &^ (1 << 31)
		if uint64(magnitude) > lowest>>32 {
			best, lowest = insert(best, uint64(magnitude)<<32|uint64(^uint32(i)), b.shape.k)
		}
	}
	take(&s.votes, best, momentum)
	return b.shape.code(&s.votes)
}

// insert puts candidate into best, which is in falling order and holds at most k, and returns it with what a further candidate must exceed.
func insert(best []uint64, candidate uint64, k int) (_ []uint64, lowest uint64) {
	if len(best) < k {
		best = append(best, 0)
	}
	i := len(best) - 1
	for ; i > 0 && best[i-1] < candidate; i-- {
		best[i] = best[i-1]
	}
	best[i] = candidate
	if len(best) < k {
		return best, 0 // zero coefficients are never sent
	}
	return best, best[k-1]
}

// take moves the coefficients in best from the momentum to v.
func take(v *votes, best []uint64, momentum []float32) {
	v.n, v.negative = len(best), 0
	for n, b := range best { // sorted by position as they come; there are few
		p := uint16(^uint32(b))
		i := n
		for ; i > 0 && v.positions[i-1] > p; i-- {
			v.positions[i] = v.positions[i-1]
		}
		v.positions[i] = p
	}
	for i, p := range v.positions[:v.n] {
		v.negative |= uint64(math.Float32bits(momentum[p])>>31) << uint(i)
		momentum[p] = 0
	}
}

// appendPayload appends the header and the codes, c.words words for each block.
func (c *Codec) appendPayload(dst []byte, codes []uint64) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, c.PayloadMax())...)
	body := dst[start+copy(dst[start:], c.header[:]):]
	for i := range c.blocks {
		writeNumber(body, c.blocks[i].bit, c.blocks[i].shape.bits, codes[i*c.words:])
	}
	return dst
}

// checkState refuses a state that Encode has not left behind: one of numbers so large, or no numbers, that sums could overflow.
func checkState(state []float32) error {
	limit := math.Float32bits(stateMax)
	for i, x := range state {
		if v := math.Float32bits(x) &^ (1 << 31); v > limit {
			if v >= 0xff<<23 {
				return fmt.Errorf("state at element %d: %w", i, codec.ErrNotFinite)
			}
			return fmt.Errorf("state at element %d is %g, of magnitude above %g", i, x, float32(stateMax))
		}
	}
	return nil
}
