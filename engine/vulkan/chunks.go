package vulkan

import (
	"fmt"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
)

// chunks is codec sparseloco on a device. The processors quantize what is picked of each chunk, a
// sixty-fourth of all values with the usual settings, and turn it into a payload and payloads into
// what they send.
type chunks struct {
	*coder
	c     *sparseloco.Codec
	runs  []sparseloco.Run
	picks gpu.Words // of all chunks
	// Of a piece: what is picked, what payloads send, and their sums.
	values, sent, sums gpu.Words
}

func newChunks(of *coder, c *sparseloco.Codec, ends []int, alloc func(n int) gpu.Words) *chunks {
	d := &chunks{coder: of, c: c, runs: c.Runs(ends)}
	most, sums := 0, 0
	d.pieces(func(r sparseloco.Run) { most, sums = max(most, r.Count), max(sums, r.Count*r.N) })
	d.picks, d.values = alloc(c.Chunks()*c.Picks()/2), alloc(c.Chunks()*c.Picks())
	d.sent, d.sums = alloc(max(most*c.SentLen(), min(votesWords, c.Chunks()*c.SentLen()))), alloc(sums)
	return d
}

func (d *chunks) write() error { return nil }

// use makes c the codec, and reports whether it is the same.
func (d *chunks) use(c codec.Codec) bool {
	other, ok := c.(*sparseloco.Codec)
	if f, sums := c.(sparseloco.Followable); sums {
		other, ok = f.Codec, true
	}
	if !ok || other.Header() != d.c.Header() || other.Config() != d.c.Config() {
		return false
	}
	d.c = other
	return true
}

// pieces calls f for all chunks, in pieces of runs that the work space holds.
func (d *chunks) pieces(f func(r sparseloco.Run)) {
	for _, r := range d.runs {
		most := max(1, workFloats/r.N)
		for left := r.Count; left > 0; left -= r.Count {
			r.Count = min(left, most)
			f(r)
			r.From, r.First = r.From+r.Count*r.N, r.First+r.Count
		}
	}
}

// encode implements does.
func (d *chunks) encode(state []float32, step float32) ([]byte, error) {
	i := int(d.random.Uint64n(uint64(d.c.Chunks())))
	from, to := d.c.Chunk(i)
	want, change := make([]float32, to-from), make([]float32, to-from)
	if err := read(want, at(d.state, from), change, at(d.grad, from)); err != nil {
		return nil, err
	}
	if err := same("a state that it kept", want, state[from:to]); err != nil {
		return nil, err
	}
	cfg, each := d.c.Config(), d.c.Picks()/2
	if err := d.k.Device.Run(func(c *gpu.Commands) {
		c.Clear(d.most)
		d.pieces(func(r sparseloco.Run) {
			b, of := kernel.Blocks{Rows: 1, Cols: r.N, Stride: r.N * r.Count, Down: 1, Columns: r.Count}, at(d.state, r.From)
			d.k.Momentum(c, of, at(d.grad, r.From), d.most, b, cfg.Decay, step)
			d.k.Pick(c, of, d.picks.At(r.First*each), d.values.At(r.First*2*each), b, cfg.TopK, each, r.Count)
			c.Cut()
		})
	}); err != nil {
		return nil, err
	}
	if err := d.checkState(sparseloco.StateMax); err != nil {
		return nil, fmt.Errorf("sparseloco: %w", err)
	}
	picks, err := readPicks(d.picks)
	if err != nil {
		return nil, err
	}
	values := make([]float32, len(picks))
	if err := gpu.Read(values, d.values); err != nil {
		return nil, err
	}
	payload, err := d.c.Payload(picks, values)
	if err != nil {
		return nil, differs("vulkan: the device sends what no processor would: " + err.Error())
	}
	d.pieces(func(r sparseloco.Run) {
		if err == nil {
			err = d.put(at(d.state, r.From), r, [][]byte{payload}, []float32{-1})
		}
	})
	if err != nil {
		return nil, err
	}
	got := make([]float32, len(want))
	if err := gpu.Read(got, at(d.state, from)); err != nil {
		return nil, err
	}
	for k := range change {
		change[k] *= step
	}
	d.c.EncodeChunk(i, want, change)
	return payload, same("a state", got, want)
}

// put adds what payloads send of a run, times factors, to x: one payload after the other.
func (d *chunks) put(x gpu.Words, r sparseloco.Run, payloads [][]byte, factors []float32) error {
	stride := r.Count * d.c.SentLen()
	for len(payloads) > 0 {
		n := min(d.sent.Len/stride, len(payloads))
		words := make([]uint32, n*stride)
		for i, p := range payloads[:n] {
			d.c.Sent(words[i*stride:(i+1)*stride], p, r.First, r.First+r.Count, factors[i])
		}
		if err := gpu.Write(d.sent, words); err != nil {
			return err
		}
		if err := d.k.Device.Run(func(c *gpu.Commands) {
			for i := range n {
				d.k.Put(c, x, d.sent.At(i*stride), r.Count, r.N, d.c.Picks()/2)
			}
		}); err != nil {
			return err
		}
		payloads, factors = payloads[n:], factors[n:]
	}
	return nil
}

// apply implements does. The payloads contain the learning rate.
func (d *chunks) apply(params []float32, payloads [][]byte, _ float32) (err error) {
	if len(payloads) == 0 {
		return nil
	}
	i := int(d.random.Uint64n(uint64(d.c.Chunks())))
	from, to := d.c.Chunk(i)
	want, got := make([]float32, to-from), make([]float32, to-from)
	if err := gpu.Read(want, at(d.params, from)); err != nil {
		return err
	}
	if err := same("parameters that it kept", want, params[from:to]); err != nil {
		return err
	}
	if d.c.Config().ClipChunks > 0 {
		if err := d.follow(payloads, i, want); err != nil {
			return err
		}
		if err := gpu.Read(got, at(d.params, from)); err != nil {
			return err
		}
		return same("parameters of a set", got, want)
	}
	factors := d.c.Factors(payloads)
	d.pieces(func(r sparseloco.Run) {
		if err != nil {
			return
		}
		n, x := r.Count*r.N, at(d.params, r.From)
		if err = d.k.Device.Run(func(c *gpu.Commands) { c.Clear(d.sums.First(n)) }); err != nil {
			return
		}
		if err = d.put(d.sums, r, payloads, factors); err != nil {
			return
		}
		err = d.k.Device.Run(func(c *gpu.Commands) {
			d.k.MeanStep(c, x, x, d.sums, n, float32(len(payloads)), d.c.Config().OuterRate)
		})
	})
	if err != nil {
		return err
	}
	if err := gpu.Read(got, at(d.params, from)); err != nil {
		return err
	}
	d.c.ApplyChunk(i, want, payloads, factors)
	return same("parameters of a set", got, want)
}

// follow is apply where sums are integers: the processors make the update. want is chunk i before
// and after.
func (d *chunks) follow(payloads [][]byte, i int, want []float32) error {
	update, err := sparseloco.Followable{Codec: d.c}.Update(nil, payloads)
	if err != nil {
		return err
	}
	rate := d.c.Config().OuterRate
	step := make([]float32, len(want))
	d.c.Means(step, update, i, 1)
	for k, x := range step {
		want[k] -= float32(rate * x)
	}
	d.pieces(func(r sparseloco.Run) {
		if err != nil {
			return
		}
		n, x := r.Count*r.N, at(d.params, r.From)
		means := make([]float32, n)
		d.c.Means(means, update, r.First, r.Count)
		if err = gpu.Write(d.sums, means); err == nil {
			err = d.k.Device.Run(func(c *gpu.Commands) { d.k.MeanStep(c, x, x, d.sums, n, 1, rate) })
		}
	})
	return err
}
