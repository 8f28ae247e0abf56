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

// chunksPerTask is the number of chunks in a task. It does not affect results.
const chunksPerTask = 8

// A job is the work space of one Encode or Apply. Jobs are reused, so that calls allocate nothing.
type job struct {
	c          *Codec
	clipper    *codec.Clipper
	checkState *codec.StateCheck
	scratch    []scratch // by worker

	// run a task; bound to the job once
	encode, measure, apply, applySums func(w *exact.Worker, task int)

	state, change []float32 // arguments of Encode
	messages      []message // by chunk

	params   []float32 // arguments of Apply
	payloads [][]byte
	norms    []float64 // by payload
	sorted   []float64
	clips    []float32
	ranges   bool // payloads are ranges, from bit skip of the messages on
	skip     int
}

// scratch is the work space of one worker.
type scratch struct {
	lanes    [vec.Lanes]float32
	picker   subset.Picker
	chosen   subset.Signed
	values   [TopKMax]float32 // those chosen
	added    []float32
	readings [vec.Numbers]subset.Reading
	messages [vec.Numbers]message

	// Of a Followable.
	sums   []int64
	means  []float32
	norms  []float64 // of a group, by payload
	sorted []float64
	clips  []float32
	scales [vec.Numbers]float64
}

// A message is what a payload holds of a chunk: the code of its positions and signs, the bits of
// large values, and the upper halves of low and high.
type message struct {
	code      subset.Number
	large     uint64
	low, high uint16
}

func (c *Codec) get() *job {
	select {
	case j := <-c.spare:
		return j
	default:
	}
	j := &job{
		c: c, clipper: codec.NewClipper(c.pool), checkState: codec.NewStateCheck(c.pool), scratch: make([]scratch, c.pool.Workers()),
		messages: make([]message, len(c.chunks)),
	}
	for i := range j.scratch {
		j.scratch[i].picker = subset.NewPicker(c.cfg.Chunk, c.cfg.TopK)
		j.scratch[i].added = make([]float32, c.cfg.Chunk)
		if c.cfg.ClipChunks > 0 {
			j.scratch[i].sums, j.scratch[i].means = make([]int64, c.cfg.Chunk), make([]float32, c.cfg.Chunk)
		}
	}
	j.encode, j.measure, j.apply = j.encodeChunks, j.measurePayload, j.applyChunks
	move := j.move
	j.applySums = func(w *exact.Worker, i int) { j.average(&j.scratch[w.Index()], c.group(i), move) }
	return j
}

func (c *Codec) put(j *job) {
	j.state, j.change, j.params, j.payloads = nil, nil, nil, nil // releases the caller's memory
	j.ranges = false
	select {
	case c.spare <- j:
	default:
	}
}

// tasks returns the number of tasks.
func (c *Codec) tasks() int { return (len(c.chunks) + chunksPerTask - 1) / chunksPerTask }

// Encode adds the pseudo-gradient to the error feedback in state, appends the payload with its
// largest values, and subtracts these as they are sent. It ignores the learning rate, which the
// pseudo-gradient contains. See codec.Codec and the package comment.
func (c *Codec) Encode(dst []byte, state, change []float32, lr float32) ([]byte, error) {
	if len(state) != c.n || len(change) != c.n {
		panic(fmt.Sprintf("sparseloco: state of %d and change of %d elements for a layout of %d", len(state), len(change), c.n))
	}
	if err := codec.CheckLR(lr, 0); err != nil {
		return dst, fmt.Errorf("sparseloco: %w", err)
	}
	j := c.get()
	defer c.put(j)
	if _, err := j.clipper.Clip(change, 0); err != nil {
		return dst, fmt.Errorf("sparseloco: %w", err)
	}
	if err := j.checkState.Check(state, stateMax); err != nil {
		return dst, fmt.Errorf("sparseloco: %w", err)
	}
	j.state, j.change = state, change
	c.pool.RunOn(c.tasks(), j.encode)
	return c.appendPayload(dst, j.messages), nil
}

// encodeChunks encodes the chunks of one task.
func (j *job) encodeChunks(w *exact.Worker, task int) {
	for i := task * chunksPerTask; i < min((task+1)*chunksPerTask, len(j.c.chunks)); i++ {
		j.messages[i] = j.encodeChunk(&j.scratch[w.Index()], &j.c.chunks[i])
	}
}

// pickRun is the number of values in a run of vec.Lanes groups for the picker.
const pickRun = 8 * vec.Lanes

func (j *job) encodeChunk(s *scratch, c *chunk) message {
	e := j.state[c.from : c.from+c.n]
	s.picker.Most = s.picker.Most[:0]
	for i := 0; i < c.n; i += pickRun {
		s.lanes = [vec.Lanes]float32{}
		to := min(i+pickRun, c.n)
		j.c.loop.Momentum(e[i:to], j.change[c.from+i:c.from+to], j.c.cfg.Decay, 1, &s.lanes)
		s.picker.Most = append(s.picker.Most, s.lanes[:]...)
	}
	s.picker.Top(&j.c.loop, e, c.space.K, &s.chosen)
	positions := s.chosen.Positions[:s.chosen.N]
	for i, p := range positions {
		s.values[i] = e[p]
	}
	v := quantize(c, s.values[:len(positions)], &s.chosen)
	if v.sends() {
		for i, p := range positions {
			e[p] -= v.value(&s.chosen, i)
		}
	}
	return v
}

// quantize makes the message of the chosen values, and sets their signs.
func quantize(c *chunk, values []float32, chosen *subset.Signed) message {
	mean := meanOf(values, 0, 0)
	var large uint64
	for i, x := range values {
		if magnitude(x) > mean {
			large |= 1 << uint(i)
		}
		chosen.Negative |= uint64(math.Float32bits(x)>>31) << uint(i)
	}
	if bits.OnesCount64(large) == len(values) {
		large = 0 // only if the mean was rounded down
	}
	v := message{large: large, low: half(meanOf(values, large, 0))}
	if !normal(v.low) {
		return message{}
	}
	if v.high = v.low; large != 0 {
		v.high = half(meanOf(values, large, 1))
	}
	if v.high <= v.low { // both round to the same
		v.high, v.large = v.low, 0
	}
	v.code = c.space.Code(chosen)
	return v
}

// sends reports whether v sends anything.
func (v *message) sends() bool { return v.low != 0 }

// value returns the value sent for chosen position i.
func (v *message) value(chosen *subset.Signed, i int) float32 {
	bits := uint32(v.low)
	if v.large>>uint(i)&1 == 1 {
		bits = uint32(v.high)
	}
	return math.Float32frombits(bits<<16 | uint32(chosen.Negative>>uint(i)&1)<<31)
}

// meanOf returns the mean magnitude of the values whose bit in large is want, or 0 if there are
// none.
func meanOf(values []float32, large, want uint64) float32 {
	var sum float32
	n := 0
	for i, x := range values {
		if large>>uint(i)&1 == want {
			sum += magnitude(x)
			n++
		}
	}
	return sum / float32(max(n, 1))
}

func magnitude(x float32) float32 { return math.Float32frombits(math.Float32bits(x) & vec.Abs) }

// half returns the upper half of x, which is not negative, rounded to bfloat16, ties to even.
func half(x float32) uint16 {
	b := math.Float32bits(x)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// halfMin and halfMax are the upper halves of the least normal number and of 2^100.
const halfMin, halfMax = 1 << 7, (127 + 100) << 7

// normal reports whether h is the upper half of a positive normal binary32.
func normal(h uint16) bool { return h >= halfMin }

// appendPayload appends the header and the messages of the chunks.
func (c *Codec) appendPayload(dst []byte, messages []message) []byte {
	start := len(dst)
	dst = slices.Grow(dst, c.PayloadMax())[:start+c.PayloadMax()]
	clear(dst[start:])
	body := dst[start+copy(dst[start:], c.header[:]):]
	for i := range c.chunks {
		k, v := &c.chunks[i], &messages[i]
		subset.WriteNumber(body, k.bit, k.space.Bits, v.code[:])
		subset.WriteBits(body, k.bit+k.space.Bits, k.space.K, v.large)
		subset.WriteBits(body, k.bit+k.space.Bits+k.space.K, scaleBits, uint64(v.high)<<16|uint64(v.low))
	}
	return dst
}
