package sparseloco

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/codec/internal/vec"
	"github.com/entrain-network/entrain/exact"
)

// chunksPerTask is how much a worker takes at a time. The results do not depend on it.
const chunksPerTask = 8

// A job is the work space of one Encode or Apply, used again by later ones, so that they allocate
// nothing.
type job struct {
	c          *Codec
	clipper    *codec.Clipper
	checkState *codec.StateCheck
	scratch    []scratch // of each worker of the pool

	encode, measure, apply func(w *exact.Worker, task int) // the work on a task, bound to the job once

	state, change []float32 // of Encode
	said          []saying  // of the chunks

	params   []float32 // of Apply
	payloads [][]byte
	norms    []float64 // of the payloads
	sorted   []float64
	clips    []float32
}

// scratch is the work space of one worker.
type scratch struct {
	lanes    [vec.Lanes]float32
	picker   subset.Picker
	chosen   subset.Signed
	sums     []float32
	readings [vec.Numbers]subset.Reading
	sayings  [vec.Numbers]saying
}

// A saying is what a payload says of a chunk: the code of its positions, which of them are large,
// and the upper halves of low and high.
type saying struct {
	code      subset.Number
	large     uint64
	low, high uint16
}

func (c *Codec) take() *job {
	select {
	case j := <-c.spare:
		return j
	default:
	}
	j := &job{
		c: c, clipper: codec.NewClipper(c.pool), checkState: codec.NewStateCheck(c.pool), scratch: make([]scratch, c.pool.Workers()),
		said: make([]saying, len(c.chunks)),
	}
	for i := range j.scratch {
		j.scratch[i].picker = subset.NewPicker(c.cfg.Chunk, c.cfg.TopK)
		j.scratch[i].sums = make([]float32, c.cfg.Chunk)
	}
	j.encode, j.measure, j.apply = j.encodeChunks, j.measurePayload, j.applyChunks
	return j
}

func (c *Codec) give(j *job) {
	j.state, j.change, j.params, j.payloads = nil, nil, nil, nil // keeps no caller's memory alive
	select {
	case c.spare <- j:
	default:
	}
}

// tasks is how many tasks the chunks make.
func (c *Codec) tasks() int { return (len(c.chunks) + chunksPerTask - 1) / chunksPerTask }

// Encode adds the pseudo-gradient to the error feedback in state, appends the payload that sends
// its largest values, and takes out what that says. The learning rate changes nothing: it is in the
// pseudo-gradient. See codec.Codec and the package comment.
func (c *Codec) Encode(dst []byte, state, change []float32, lr float32) ([]byte, error) {
	if len(state) != c.n || len(change) != c.n {
		panic(fmt.Sprintf("sparseloco: state of %d and change of %d elements for a layout of %d", len(state), len(change), c.n))
	}
	if err := codec.CheckLR(lr, 0); err != nil {
		return dst, fmt.Errorf("sparseloco: %w", err)
	}
	j := c.take()
	defer c.give(j)
	if _, err := j.clipper.Clip(change, 0); err != nil {
		return dst, fmt.Errorf("sparseloco: %w", err)
	}
	if err := j.checkState.Check(state, stateMax); err != nil {
		return dst, fmt.Errorf("sparseloco: %w", err)
	}
	j.state, j.change = state, change
	c.pool.RunOn(c.tasks(), j.encode)
	return c.appendPayload(dst, j.said), nil
}

// encodeChunks does the chunks of one task.
func (j *job) encodeChunks(w *exact.Worker, task int) {
	for i := task * chunksPerTask; i < min((task+1)*chunksPerTask, len(j.c.chunks)); i++ {
		j.said[i] = j.encodeChunk(&j.scratch[w.Index()], &j.c.chunks[i])
	}
}

// pickRun is how many values make vec.Lanes groups for a picker.
const pickRun = 8 * vec.Lanes

func (j *job) encodeChunk(s *scratch, c *chunk) saying {
	e := j.state[c.from : c.from+c.n]
	s.picker.Most = s.picker.Most[:0]
	for i := 0; i < c.n; i += pickRun {
		s.lanes = [vec.Lanes]float32{}
		to := min(i+pickRun, c.n)
		j.c.loop.Momentum(e[i:to], j.change[c.from+i:c.from+to], j.c.cfg.Decay, 1, &s.lanes)
		s.picker.Most = append(s.picker.Most, s.lanes[:]...)
	}
	s.picker.Top(&j.c.loop, e, c.space.K, &s.chosen)
	return say(c, e, &s.chosen)
}

// say makes what is said of the values chosen, and takes that out of e.
func say(c *chunk, e []float32, chosen *subset.Signed) saying {
	positions := chosen.Positions[:chosen.N]
	mean := meanOf(e, positions, 0, 0)
	var large uint64
	for i, p := range positions {
		if magnitude(e[p]) > mean {
			large |= 1 << uint(i)
		}
		chosen.Negative |= uint64(math.Float32bits(e[p])>>31) << uint(i)
	}
	if bits.OnesCount64(large) == len(positions) {
		large = 0 // the mean was rounded down
	}
	v := saying{large: large, low: half(meanOf(e, positions, large, 0))}
	if !normal(v.low) {
		return saying{}
	}
	if v.high = v.low; large != 0 {
		v.high = half(meanOf(e, positions, large, 1))
	}
	if v.high <= v.low { // they have been rounded to the same
		v.high, v.large = v.low, 0
	}
	v.code = c.space.Code(chosen)
	for i, p := range positions {
		e[p] -= v.value(chosen, i)
	}
	return v
}

// value is what is said of value i of those chosen.
func (v *saying) value(chosen *subset.Signed, i int) float32 {
	bits := uint32(v.low)
	if v.large>>uint(i)&1 == 1 {
		bits = uint32(v.high)
	}
	return math.Float32frombits(bits<<16 | uint32(chosen.Negative>>uint(i)&1)<<31)
}

// meanOf is the mean magnitude of those values at the positions whose bit in large is want; 0 if
// there are none.
func meanOf(e []float32, positions []uint16, large, want uint64) float32 {
	var sum float32
	n := 0
	for i, p := range positions {
		if large>>uint(i)&1 == want {
			sum += magnitude(e[p])
			n++
		}
	}
	return sum / float32(max(n, 1))
}

func magnitude(x float32) float32 { return math.Float32frombits(math.Float32bits(x) & vec.Abs) }

// half returns the upper half of the binary32 that is x, which is not negative, rounded to
// bfloat16, to even.
func half(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// The upper halves of the least normal number and of 2^100.
const halfMin, halfMax = 1 << 7, (127 + 100) << 7

// normal tells whether the upper half of a binary32 is that of a normal positive number.
func normal(h uint16) bool { return h >= halfMin }

// appendPayload appends the header and what is said of the chunks.
func (c *Codec) appendPayload(dst []byte, said []saying) []byte {
	start := len(dst)
	dst = slices.Grow(dst, c.PayloadMax())[:start+c.PayloadMax()]
	clear(dst[start:])
	body := dst[start+copy(dst[start:], c.header[:]):]
	for i := range c.chunks {
		k, v := &c.chunks[i], &said[i]
		subset.WriteNumber(body, k.bit, k.space.Bits, v.code[:])
		subset.WriteBits(body, k.bit+k.space.Bits, k.space.K, v.large)
		subset.WriteBits(body, k.bit+k.space.Bits+k.space.K, scaleBits, uint64(v.high)<<16|uint64(v.low))
	}
	return dst
}
