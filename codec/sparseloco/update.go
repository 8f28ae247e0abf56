package sparseloco

import (
	"encoding/binary"
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
//	12      rest   for each chunk 2 bytes, lowest first, and a byte for each weight
//
// Means have four significant bits, so exponent and fraction of one are 11 bits of a binary32, its
// level. The two bytes are the chunk's greatest level, or 0 if nothing moves. A weight's byte is 0
// if it does not move; or 127 less the number of levels by which its own is below the greatest, at
// least 1, plus 128 if the mean is negative, by which the weight rises. One mean at least has the
// greatest level. No two encodings mean the same update, and all have the same length.

const updateMagic = "eSU1" // entrain, SparseLoCo's update, version 1

const (
	fractionBits = 3   // of a mean, after the first significant bit
	levelShift   = 20  // of a binary32, to its level
	levelsMax    = 127 // levels of a chunk's means
	octaves      = 14  // by which means may be below the greatest
	minusBit     = 0x80
	// A clipped value is less than 2^(unitBits+2) units, and the sum of codec.PayloadsMax is an int64.
	unitBits = 44
	expBias  = 127
	// levelMost is that of the greatest mean: less than twice the norm of clipMax chunks of TopKMax
	// values of 2^100.
	levelMost = (expBias + 100 + 10 + 2) << fractionBits
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
func (k *chunk) meansLen() int { return 2 + k.n }

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
			round(means, s.sums[:k.n], n, exponent(median)-unitBits)
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

// round sets means to sums/count, in units of 2^unit, rounded to four significant bits, ties to
// even. Those more than octaves below the greatest are 0.
func round(means []float32, sums []int64, count, unit int) {
	var most int64
	for _, sum := range sums {
		most = max(most, max(sum, -sum))
	}
	clear(means)
	if most == 0 {
		return
	}
	lowest := exponent(float64(most)/float64(count)) - octaves
	if lowest+unit+expBias < 1 {
		return
	}
	least, scale := math.Ldexp(1, lowest), math.Ldexp(1, unit)
	for i, sum := range sums {
		y := float64(sum) / float64(count)
		if math.Abs(y) < least {
			continue
		}
		const drop = 52 - fractionBits
		b := math.Float64bits(y)
		b = (b + 1<<(drop-1) - 1 + b>>drop&1) &^ (1<<drop - 1)
		means[i] = float32(math.Float64frombits(b) * scale)
	}
}

// pack writes the means of a chunk.
func pack(dst []byte, means []float32) {
	var most uint32
	for _, x := range means {
		most = max(most, math.Float32bits(x)<<1>>1>>levelShift)
	}
	binary.LittleEndian.PutUint16(dst, uint16(most))
	for i, x := range means {
		b := math.Float32bits(x)
		if dst[2+i] = 0; b<<1 != 0 {
			dst[2+i] = byte(levelsMax-(most-b<<1>>1>>levelShift)) | byte(b>>31)*minusBit
		}
	}
}

// unpack is the inverse of pack.
func unpack(means []float32, src []byte) {
	base := uint32(binary.LittleEndian.Uint16(src)) - levelsMax
	for i, v := range src[2 : 2+len(means)] {
		if means[i] = 0; v != 0 {
			means[i] = math.Float32frombits((base+uint32(v&^minusBit))<<levelShift | uint32(v&minusBit)<<24)
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
			wrong[i] = !canonical(b[k.at-chunks[0].at:][:k.meansLen()])
		}
	})
	if i := slices.Index(wrong, true); i >= 0 {
		return fmt.Errorf("sparseloco: update: chunk %d is malformed", i)
	}
	return nil
}

// canonical reports whether pack writes b.
func canonical(b []byte) bool {
	greatest := int(binary.LittleEndian.Uint16(b))
	most, least := 0, levelsMax
	for _, v := range b[2:] {
		if v == minusBit {
			return false
		}
		if v != 0 {
			most, least = max(most, int(v&^minusBit)), min(least, int(v&^minusBit))
		}
	}
	if most == 0 {
		return greatest == 0
	}
	// The least is a normal number.
	return most == levelsMax && greatest <= levelMost && greatest-(levelsMax-least) >= 1<<fractionBits
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
