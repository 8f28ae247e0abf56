package sparseloco

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/internal/subset"
	"github.com/entrain-network/entrain/exact"
)

// What an engine needs that keeps state and parameters elsewhere, on a device: where the chunks
// are, and the way from what is picked to a payload, and from payloads to sums.

// A Run is neighbouring chunks of one size: Count of N values, from chunk First and value From on.
type Run struct{ From, N, First, Count int }

// Runs returns all chunks. No run reaches over one of ends, the values at which tensors begin.
func (c *Codec) Runs(ends []int) (runs []Run) {
	for i, k := range c.chunks {
		if i > 0 && k.n == c.chunks[i-1].n && !slices.Contains(ends, k.from) {
			runs[len(runs)-1].Count++
			continue
		}
		runs = append(runs, Run{From: k.from, N: k.n, First: i, Count: 1})
	}
	return runs
}

// Config returns the codec's settings, and Header what payloads begin with.
func (c *Codec) Config() Config       { return c.cfg }
func (c *Codec) Header() codec.Header { return c.header }

// StateMax is the greatest magnitude of a state that Encode accepts.
const StateMax = stateMax

// None is a pick of nothing.
const None = 0xffff

// Picks returns the number of picks of a chunk: an even number, at least TopK. A pick is a position
// and, as Minus, the sign.
func (c *Codec) Picks() int { return (c.cfg.TopK + 1) &^ 1 }

// Minus is the bit of a pick, and of a word of Sent, that says that a value is negative; Large is
// the bit of the latter that says that it is large.
const (
	Minus = 0x8000
	Large = 0x4000
)

var errPicks = errors.New("sparseloco: picks are not ascending positions with their signs")

// Payload returns the payload of what was picked of each chunk, ascending and then None, and of the
// values there. It returns an error if no Encode picks that.
func (c *Codec) Payload(picks []uint16, values []float32) ([]byte, error) {
	each := c.Picks()
	if len(picks) != each*len(c.chunks) || len(values) != len(picks) {
		panic(fmt.Sprintf("sparseloco: %d picks and %d values, want %d", len(picks), len(values), each*len(c.chunks)))
	}
	j := c.get()
	defer c.put(j)
	wrong := make([]bool, c.tasks())
	c.pool.RunOn(c.tasks(), func(w *exact.Worker, task int) {
		chosen := &j.scratch[w.Index()].chosen
		for i := task * chunksPerTask; i < min((task+1)*chunksPerTask, len(c.chunks)); i++ {
			k := &c.chunks[i]
			if !choose(chosen, picks[i*each:(i+1)*each], values[i*each:], k) {
				wrong[task] = true
				continue
			}
			j.messages[i] = quantize(k, values[i*each:][:chosen.N], chosen)
		}
	})
	if slices.Contains(wrong, true) {
		return nil, errPicks
	}
	return c.appendPayload(nil, j.messages), nil
}

// choose sets chosen to picks without signs, and reports whether they are as Encode picks.
func choose(chosen *subset.Signed, picks []uint16, values []float32, k *chunk) bool {
	chosen.N, chosen.Negative = 0, 0
	least := 0
	for i, p := range picks {
		if p == None {
			continue
		}
		at := int(p &^ Minus)
		if chosen.N < i || i >= k.space.K || at < least || at >= k.n || values[i] == 0 || math.Signbit(float64(values[i])) != (p >= Minus) {
			return false
		}
		chosen.Positions[i], chosen.N, least = uint16(at), i+1, at+1
	}
	return true
}

// SentLen returns the number of words that Sent fills for a chunk.
func (c *Codec) SentLen() int { return c.Picks()/2 + 3 }

// Sent fills dst with what a payload that passes Check sends of chunks [from, to), times factor:
// for each chunk its positions with Minus and Large, two to a word, then the two magnitudes and how
// many positions there are.
func (c *Codec) Sent(dst []uint32, payload []byte, from, to int, factor float32) {
	const each = 64 // chunks that a worker takes at a time
	clear(dst)
	c.pool.Run((to-from+each-1)/each, func(task int) {
		var readings [subset.Readings]subset.Reading
		var messages [subset.Readings]message
		for i, end := from+task*each, min(from+(task+1)*each, to); i < end; {
			space, n := c.chunks[i].space, 0
			for ; n < len(readings) && i+n < end && c.chunks[i+n].space == space; n++ {
				messages[n] = c.chunks[i+n].read(&readings[n], payload[codec.HeaderLen:])
			}
			space.Decode(&c.loop, readings[:n])
			for k := range readings[:n] {
				messages[k].words(dst[(i-from+k)*c.SentLen():][:c.SentLen()], &readings[k].Set, factor)
			}
			i += n
		}
	})
}

// words fills dst as Sent does.
func (v *message) words(dst []uint32, chosen *subset.Signed, factor float32) {
	for i, p := range chosen.Positions[:chosen.N] {
		pick := uint32(p) | uint32(v.large>>uint(i)&1)*Large | uint32(chosen.Negative>>uint(i)&1)*Minus
		dst[i/2] |= pick << uint(i%2*16)
	}
	last := dst[len(dst)-3:]
	for i, h := range []uint16{v.low, v.high} {
		last[i] = math.Float32bits(float32(factor * math.Float32frombits(uint32(h)<<16)))
	}
	last[2] = uint32(chosen.N)
}

// Factors returns by how much each payload of a set counts.
func (c *Codec) Factors(payloads [][]byte) []float32 {
	j := c.get()
	defer c.put(j)
	j.payloads = payloads
	j.clip()
	return slices.Clone(j.clips)
}

// Means fills dst with the means of chunks from first on, of an update that passes CheckUpdate.
func (c *Codec) Means(dst []float32, update []byte, first, count int) {
	const each = 64 // chunks that a worker takes at a time
	chunks := c.chunks[first : first+count]
	c.pool.Run((count+each-1)/each, func(task int) {
		for i := task * each; i < min((task+1)*each, count); i++ {
			k := &chunks[i]
			unpack(dst[k.from-chunks[0].from:][:k.n], update[codec.HeaderLen+k.at:][:k.meansLen()])
		}
	})
}

// Chunk returns where the values of a chunk are, and Chunks the number of chunks.
func (c *Codec) Chunk(i int) (from, to int) {
	return c.chunks[i].from, c.chunks[i].from + c.chunks[i].n
}
func (c *Codec) Chunks() int { return len(c.chunks) }

// EncodeChunk is Encode for the state and the change of chunk i alone.
func (c *Codec) EncodeChunk(i int, state, change []float32) {
	j := c.get()
	defer c.put(j)
	j.state, j.change = state, change
	alone := c.chunks[i]
	alone.from = 0
	j.encodeChunk(&j.scratch[0], &alone)
}

// ApplyChunk is Apply for the parameters of chunk i alone, a set that passes CheckSet, and its
// Factors.
func (c *Codec) ApplyChunk(i int, params []float32, payloads [][]byte, factors []float32) {
	j := c.get()
	defer c.put(j)
	j.params, j.payloads, j.clips = params, payloads, append(j.clips[:0], factors...)
	alone := c.chunks[i]
	alone.from = 0
	j.applyChunk(&j.scratch[0], &alone)
}
