package sparseloco

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// Check returns an error unless payload is canonical. See codec.Codec.
func (c *Codec) Check(payload []byte) error {
	if err := c.check(payload); err != nil {
		return fmt.Errorf("sparseloco: %w", err)
	}
	return nil
}

func (c *Codec) check(payload []byte) error {
	if err := c.header.Check(payload, c.PayloadMax()); err != nil {
		return err
	}
	body := payload[codec.HeaderLen:]
	for i := range c.chunks {
		if err := c.chunks[i].check(body); err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	if unused := 8*len(body) - c.bits; subset.ReadBits(body, c.bits, unused) != 0 {
		return fmt.Errorf("the last %d bits are not zero", unused)
	}
	return nil
}

var (
	errCode   = errors.New("code is out of range")
	errEmpty  = errors.New("no positions, but magnitudes or large values")
	errPlaces = errors.New("large values without positions")
	errScale  = errors.New("magnitudes are not ascending normal numbers up to 2^100")
	errLarge  = errors.New("magnitudes differ if and only if some, but not all, values are large")
)

// check returns an error unless the chunk's message is canonical.
func (k *chunk) check(body []byte) error {
	if !k.space.Valid(body, k.bit) {
		return errCode
	}
	var r subset.Reading
	v := k.read(&r, body)
	n := k.space.Size(&r.Rest)
	switch {
	case n == 0:
		if v.large != 0 || v.low != 0 || v.high != 0 {
			return errEmpty
		}
	case n < 64 && v.large>>uint(n) != 0:
		return errPlaces
	case !normal(v.low) || v.high < v.low || v.high > halfMax:
		return errScale
	case (v.large != 0) != (v.high > v.low) || bits.OnesCount64(v.large) == n:
		return errLarge
	}
	return nil
}

// read returns the chunk's message, and its code in r.Rest for Decode.
func (k *chunk) read(r *subset.Reading, body []byte) (v message) {
	k.space.Read(r, body, k.bit)
	v.large = subset.ReadBits(body, k.bit+k.space.Bits, k.space.K)
	scales := subset.ReadBits(body, k.bit+k.space.Bits+k.space.K, scaleBits)
	v.low, v.high = uint16(scales), uint16(scales>>16)
	return v
}

// Apply updates params by the mean of the payloads. It ignores the learning rate, which the
// payloads contain. See codec.Codec and the package comment.
func (c *Codec) Apply(params []float32, payloads [][]byte, lr float32) error {
	if len(params) != c.n {
		panic(fmt.Sprintf("sparseloco: %d parameters for a layout of %d", len(params), c.n))
	}
	if err := codec.CheckSet(c.check, payloads, lr, 0); err != nil {
		return fmt.Errorf("sparseloco: %w", err)
	}
	if len(payloads) == 0 {
		return nil
	}
	j := c.get()
	defer c.put(j)
	j.params, j.payloads = params, payloads
	if c.cfg.ClipChunks > 0 {
		c.pool.RunOn(c.groups(), j.applySums)
		return nil
	}
	j.clip()
	c.pool.RunOn(c.tasks(), j.apply)
	return nil
}

// clip computes the factor c of each payload.
func (j *job) clip() {
	n := len(j.payloads)
	j.norms, j.clips = slices.Grow(j.norms[:0], n)[:n], slices.Grow(j.clips[:0], n)[:n]
	j.c.pool.RunOn(n, j.measure)
	clip(j.clips, &j.sorted, j.norms)
}

// clip sets clips to the factors of payloads with these norms, and returns the median.
func clip(clips []float32, sorted *[]float64, norms []float64) (median float64) {
	*sorted = append((*sorted)[:0], norms...)
	slices.Sort(*sorted)
	median = (*sorted)[(len(norms)-1)/2]
	for i, norm := range norms {
		if clips[i] = 1; norm > median {
			clips[i] = float32(median / norm)
		}
	}
	return median
}

// measurePayload computes the norm of a payload, from its magnitudes and the number of values that
// have each.
func (j *job) measurePayload(_ *exact.Worker, payload int) {
	body := j.payloads[payload][codec.HeaderLen:]
	var sum float64
	var r subset.Reading
	for i := range j.c.chunks {
		k := &j.c.chunks[i]
		v := k.read(&r, body)
		sum += v.squares(k.space.Size(&r.Rest))
	}
	j.norms[payload] = math.Sqrt(sum)
}

// squares returns the sum of the squares of the n values of a message.
func (v *message) squares(n int) float64 {
	large := bits.OnesCount64(v.large)
	return squares(n-large, v.low) + squares(large, v.high)
}

// squares returns n times the square of the binary32 with the given upper half. It is exact,
// because that number has 8 significant bits.
func squares(n int, half uint16) float64 {
	x := float64(math.Float32frombits(uint32(half) << 16))
	return float64(float64(x*x) * float64(n))
}

// applyChunks applies the chunks of one task.
func (j *job) applyChunks(w *exact.Worker, task int) {
	for i := task * chunksPerTask; i < min((task+1)*chunksPerTask, len(j.c.chunks)); i++ {
		j.applyChunk(&j.scratch[w.Index()], &j.c.chunks[i])
	}
}

func (j *job) applyChunk(s *scratch, k *chunk) {
	sums := s.added[:k.n]
	clear(sums)
	for from := 0; from < len(j.payloads); from += vec.Numbers {
		n := min(vec.Numbers, len(j.payloads)-from)
		readings := s.readings[:n]
		for i := range readings {
			s.messages[i] = k.read(&readings[i], j.payloads[from+i][codec.HeaderLen:])
		}
		k.space.Decode(&j.c.loop, readings)
		for i := range readings {
			chosen := &readings[i].Set
			v, clip := &s.messages[i], j.clips[from+i]
			for m, p := range chosen.Positions[:chosen.N] {
				sums[p] += float32(clip * v.value(chosen, m))
			}
		}
	}
	x, count, rate := j.params[k.from:k.from+k.n], float32(len(j.payloads)), j.c.cfg.OuterRate
	for i, sum := range sums {
		x[i] -= float32(rate * float32(sum/count))
	}
}
