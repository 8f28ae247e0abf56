package sparseloco

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// The update of a set of payloads is M*u of the package comment with its sign for each weight. Its
// encoding, whatever the number of payloads, is
//
//	offset  bytes
//	0       12     header: magic "eSU1", layout and the settings Chunk and TopK
//	12      rest   for each chunk a byte, and 5 bits for each weight, lowest bit of a byte first,
//	               then zeros to the end of the byte
//
// The byte is the exponent of the chunk's greatest mean as in a binary32, or 0 if nothing moves. A
// weight's number is 0 if it does not move; or 15 less the octaves by which its mean is below the
// greatest, 1 to 15, plus 16 if it is negative, by which the weight rises. One mean at least is the
// greatest. No two encodings mean the same update, and all have the same length.

const updateMagic = "eSU1" // entrain, SparseLoCo's update, version 1

const (
	levelBits = 4
	levelsMax = 1<<levelBits - 1 // octaves of the means of a chunk
	valueBits = levelBits + 1    // and the sign
	// A clipped value is less than 2^(unitBits+2) units, and the sum of codec.PayloadsMax is an int64.
	unitBits = 44
	// exponentMax is that of the greatest mean: less than twice the norm of ClipMax chunks of TopKMax
	// values of 2^100.
	exponentMax = expBias + 100 + 13 + 2
	expBias     = 127
)

// Followable is a Codec that clips groups of chunks, whose sums are integers.
type Followable struct{ *Codec }

var _ codec.Followable = Followable{}

// groups returns the number of groups of chunks, and group the chunks of one.
func (c *Codec) groups() int { return (len(c.chunks) + c.cfg.ClipChunks - 1) / c.cfg.ClipChunks }

func (c *Codec) group(i int) []chunk {
	return c.chunks[i*c.cfg.ClipChunks : min((i+1)*c.cfg.ClipChunks, len(c.chunks))]
}

// meansLen returns the length of the chunk's means in an update.
func (k *chunk) meansLen() int { return 1 + (valueBits*k.n+7)/8 }

// UpdateLen implements [codec.Followable].
func (f Followable) UpdateLen() int { return codec.HeaderLen + f.means }

// UpdateMax implements [codec.Followable].
func (f Followable) UpdateMax() int { return f.UpdateLen() }

// Update implements [codec.Followable].
func (f Followable) Update(dst []byte, payloads [][]byte) ([]byte, error) {
	if len(payloads) == 0 {
		return dst, errors.New("sparseloco: an update of no payloads")
	}
	if err := codec.CheckSet(f.check, payloads, 0, 0); err != nil {
		return dst, fmt.Errorf("sparseloco: %w", err)
	}
	start := len(dst)
	dst = slices.Grow(dst, f.UpdateLen())[:start+f.UpdateLen()]
	out := dst[start+copy(dst[start:], f.update[:]):]
	j := f.get()
	defer f.put(j)
	j.payloads = payloads
	j.write(out, f.chunks)
	return dst, nil
}

// average calls f with the rounded means of each chunk of a group.
func (j *job) average(s *scratch, group []chunk, f func(k *chunk, means []float32)) {
	n := len(j.payloads)
	s.norms, s.clips = slices.Grow(s.norms[:0], n)[:n], slices.Grow(s.clips[:0], n)[:n]
	for i := range s.norms {
		var sum float64
		var r subset.Reading
		for c := range group {
			if v, ok := j.read(&r, &group[c], i); ok {
				sum += v.squares(group[c].space.Size(&r.Rest))
			}
		}
		s.norms[i] = math.Sqrt(sum)
	}
	var median float64
	if n > 0 {
		median = clip(s.clips, &s.sorted, s.norms)
	}
	for i := range group {
		k := &group[i]
		means := s.means[:k.n]
		if median == 0 {
			clear(means)
		} else {
			j.sum(s, k, math.Ldexp(1, unitBits-exponent(median)))
			round(means, s.sums[:k.n], n, exponent(median)-unitBits, math.Float64bits(median)+uint64(k.from)*weyl)
		}
		f(k, means)
	}
}

// exponent returns that of x, a positive normal number.
func exponent(x float64) int { return int(math.Float64bits(x)>>52) - 1023 }

// read reads what payload i holds of a chunk. ok reports whether it is well formed, which it is
// unless the payload is only a range.
func (j *job) read(r *subset.Reading, k *chunk, i int) (v message, ok bool) {
	if !j.ranges {
		return k.read(r, j.payloads[i][codec.HeaderLen:]), true
	}
	moved := *k
	moved.bit -= j.skip
	if moved.check(j.payloads[i]) != nil {
		return message{}, false
	}
	return moved.read(r, j.payloads[i]), true
}

// sum sets the scratch's sums to those of the clipped values of a chunk, in 1/scale.
func (j *job) sum(s *scratch, k *chunk, scale float64) {
	sums := s.sums[:k.n]
	clear(sums)
	for at := 0; at < len(j.payloads); {
		n := 0
		for ; n < vec.Numbers && at < len(j.payloads); at++ {
			v, ok := j.read(&s.readings[n], k, at)
			if !ok {
				continue
			}
			s.messages[n], s.scales[n] = v, float64(s.clips[at])*scale
			n++
		}
		readings := s.readings[:n]
		k.space.Decode(&j.c.loop, readings)
		for i := range readings {
			chosen, v := &readings[i].Set, &s.messages[i]
			values := [2]int64{integer(v.low, s.scales[i]), integer(v.high, s.scales[i])}
			for m, p := range chosen.Positions[:chosen.N] {
				minus := -int64(chosen.Negative >> uint(m) & 1)
				sums[p] += values[v.large>>uint(m)&1] ^ minus - minus
			}
		}
	}
}

// integer returns the product of scale, of at most 24 significant bits, and the binary32 with the
// given upper half, which is exact, to the nearest integer, ties to even.
func integer(half uint16, scale float64) int64 {
	return int64(math.RoundToEven(float64(math.Float32frombits(uint32(half)<<16)) * scale))
}

// weyl is the increment of SplitMix64.
const weyl = 0x9e3779b97f4a7c15

// round sets means to sums/count, in units of 2^unit, each rounded to a power of two at random, so
// that it is right on average. seed is the state of SplitMix64 before the first.
func round(means []float32, sums []int64, count, unit int, seed uint64) {
	var most int64
	for _, sum := range sums {
		most = max(most, max(sum, -sum))
	}
	clear(means)
	if most == 0 {
		return
	}
	greatest := exponent(float64(most)/float64(count)) + 1 // of the greatest mean, rounded up
	unit += expBias
	if greatest+unit-levelsMax+1 < 1 {
		return
	}
	least := math.Ldexp(1, greatest-levelsMax+1)
	for i, sum := range sums {
		seed += weyl
		if sum == 0 {
			continue
		}
		x := float64(max(sum, -sum)) / float64(count)
		if x < least {
			// least or nothing: the fraction of 1 + x/least rounds up to 2 or down to 1
			if x = 1 + x/least; roundUp(x, seed) == 0 {
				continue
			}
			x = least
		} else {
			x = math.Ldexp(1, exponent(x)+roundUp(x, seed))
		}
		means[i] = math.Float32frombits(uint32(exponent(x)+unit)<<23 | uint32(uint64(sum)>>63)<<31)
	}
}

// roundUp returns 1 with a probability of x's fraction beyond its power of two, and otherwise 0.
func roundUp(x float64, seed uint64) int {
	z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	const fraction = 1<<52 - 1
	return int((math.Float64bits(x)&fraction + (z^z>>31)>>12) >> 52)
}

// pack writes means, each a power of two or 0, of a chunk.
func pack(dst []byte, means []float32) {
	clear(dst)
	var most uint32
	for _, x := range means {
		most = max(most, math.Float32bits(x)<<1>>24)
	}
	dst[0] = byte(most)
	for i, x := range means {
		if b := math.Float32bits(x); b<<1 != 0 {
			subset.WriteBits(dst[1:], valueBits*i, valueBits, uint64(levelsMax-most+b<<1>>24|b>>31<<levelBits))
		}
	}
}

// unpack is the inverse of pack.
func unpack(means []float32, src []byte) {
	base := uint32(src[0]) - levelsMax
	for i := range means {
		means[i] = 0
		if v := uint32(subset.ReadBits(src[1:], valueBits*i, valueBits)); v != 0 {
			means[i] = math.Float32frombits((base+v&levelsMax)<<23 | v>>levelBits<<31)
		}
	}
}

// CheckUpdate implements [codec.Followable].
func (f Followable) CheckUpdate(update []byte) error {
	if err := f.update.Check(update, f.UpdateLen()); err != nil {
		return fmt.Errorf("sparseloco: update: %w", err)
	}
	return f.checkMeans(update[codec.HeaderLen:], f.chunks)
}

// checkMeans checks the means of consecutive chunks.
func (c *Codec) checkMeans(b []byte, chunks []chunk) error {
	wrong := make([]bool, len(chunks))
	c.pool.Run((len(chunks)+chunksPerTask-1)/chunksPerTask, func(task int) {
		for i := task * chunksPerTask; i < min((task+1)*chunksPerTask, len(chunks)); i++ {
			k := &chunks[i]
			wrong[i] = !canonical(b[k.at-chunks[0].at:][:k.meansLen()], k.n)
		}
	})
	if i := slices.Index(wrong, true); i >= 0 {
		return fmt.Errorf("sparseloco: update: chunk %d is malformed", i)
	}
	return nil
}

// canonical reports whether pack writes b for some n means.
func canonical(b []byte, n int) bool {
	most, least := uint64(0), uint64(levelsMax)
	for i := range n {
		switch v := subset.ReadBits(b[1:], valueBits*i, valueBits); v & levelsMax {
		case 0:
			if v != 0 {
				return false
			}
		default:
			most, least = max(most, v&levelsMax), min(least, v&levelsMax)
		}
	}
	if unused := 8*(len(b)-1) - valueBits*n; subset.ReadBits(b[1:], valueBits*n, unused) != 0 {
		return false
	}
	if most == 0 {
		return b[0] == 0
	}
	return most == levelsMax && b[0] <= exponentMax && uint64(b[0])+least > levelsMax
}

// Follow implements [codec.Followable].
func (f Followable) Follow(params []float32, update []byte, lr float32) error {
	if len(params) != f.n {
		panic(fmt.Sprintf("sparseloco: %d parameters for a layout of %d", len(params), f.n))
	}
	if err := codec.CheckLR(lr, 0); err != nil {
		return fmt.Errorf("sparseloco: %w", err)
	}
	if err := f.CheckUpdate(update); err != nil {
		return err
	}
	j := f.get()
	defer f.put(j)
	j.params = params
	f.pool.RunOn(f.tasks(), func(w *exact.Worker, task int) {
		for i := task * chunksPerTask; i < min((task+1)*chunksPerTask, len(f.chunks)); i++ {
			k := &f.chunks[i]
			means := j.scratch[w.Index()].means[:k.n]
			unpack(means, update[codec.HeaderLen+k.at:][:k.meansLen()])
			j.move(k, means)
		}
	})
	return nil
}

// move changes the parameters of a chunk by means.
func (j *job) move(k *chunk, means []float32) {
	x, rate := j.params[k.from:k.from+k.n], j.c.cfg.OuterRate
	for i, mean := range means {
		x[i] -= float32(rate * mean)
	}
}
