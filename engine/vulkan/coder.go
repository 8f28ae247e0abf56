package vulkan

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// coder runs codec distro where gradient and parameters are. The processors only turn what is
// picked of each block into a payload, and payloads into picks.
type coder struct {
	k            *kernel.Kernels
	c            *distro.Codec
	random       *prng.Source
	params, grad []part
	state        []part // of the member that encoded last
	grids        []distro.Grid
	length, each int // elements; words that a block's picks take

	bases                      map[int]gpu.Words
	work, spare                gpu.Words // a piece of a grid
	picks, votes, most, leaves gpu.Words
	tables                     [3]gpu.Words // of params, grad and state
}

// workFloats bounds the piece of a grid that is transformed at once. Tests make it small.
var workFloats = 4 << 20

// votesWords bounds the picks that are sent at once, unless those of one payload are more.
const votesWords = 1 << 20

// newCoder returns a coder whose memory alloc makes; prepare makes it ready.
func newCoder(c *distro.Codec, params, grad []part, alloc func(n int) gpu.Words) *coder {
	d := &coder{c: c, params: params, grad: grad, length: c.StateLen(), bases: make(map[int]gpu.Words)}
	ends := make([]int, len(params))
	for i, p := range params {
		ends[i] = p.from
		d.state = append(d.state, part{p.from, alloc(p.at.Len)})
	}
	d.grids = c.Grids(ends)
	work, votes := 0, 0
	for _, g := range d.grids {
		for _, side := range []int{g.Rows, g.Cols} {
			if _, ok := d.bases[side]; !ok {
				d.bases[side] = alloc(side * side)
			}
		}
	}
	d.each = c.PicksLen() / 2 / max(c.Blocks(), 1)
	d.pieces(func(g distro.Grid, b kernel.Blocks) {
		work, votes = max(work, b.Len()), max(votes, d.stride(g))
	})
	d.work, d.spare = alloc(work), alloc(work)
	d.picks, d.votes, d.most = alloc(c.PicksLen()/2), alloc(max(votes, min(votesWords, c.PicksLen()/2))), alloc(1)
	d.leaves = alloc(kernel.LeavesLen(d.length))
	for i := range d.tables {
		d.tables[i] = alloc(3 * len(params))
	}
	return d
}

// prepare writes what never changes.
func (d *coder) prepare(k *kernel.Kernels, random *prng.Source) error {
	d.k, d.random = k, random
	for side, at := range d.bases {
		if err := gpu.Write(at, distro.Basis(side)); err != nil {
			return err
		}
	}
	for i, parts := range [][]part{d.params, d.grad, d.state} {
		var words []gpu.Words
		for _, p := range parts {
			words = append(words, p.at)
		}
		if err := gpu.Write(d.tables[i], kernel.Table(words)); err != nil {
			return err
		}
	}
	return nil
}

// pieces calls f for all blocks, in pieces of grids that the work space holds.
func (d *coder) pieces(f func(g distro.Grid, b kernel.Blocks)) {
	for _, g := range d.grids {
		row := g.Columns * g.Rows * g.Cols
		most := max(1, min(workFloats/row, 65535/g.Columns))
		for left := g.Down; left > 0; left -= g.Down {
			g.Down = min(left, most)
			f(g, kernel.Blocks{Rows: g.Rows, Cols: g.Cols, Stride: g.Stride, Down: g.Down, Columns: g.Columns})
			g.Offset, g.State, g.First = g.Offset+g.Down*g.Rows*g.Stride, g.State+g.Down*g.Rows*g.Stride, g.First+g.Down*g.Across
		}
	}
}

// blocks returns the number of blocks from the first to the last of a grid, and stride the words of
// their picks.
func blocks(g distro.Grid) int            { return (g.Down-1)*g.Across + g.Columns }
func (d *coder) stride(g distro.Grid) int { return blocks(g) * d.each }

// at returns where element number i is.
func at(parts []part, i int) gpu.Words {
	for _, p := range parts {
		if i < p.from+p.at.Len {
			return p.at.At(i - p.from)
		}
	}
	panic("vulkan: an element beyond the last")
}

// encode updates the state by the gradient times step, and returns the payload. state is what the
// host knows of the device's; only a sample is looked at.
func (d *coder) encode(state []float32, step float32) ([]byte, error) {
	s, err := d.sample(state)
	if err != nil {
		return nil, err
	}
	cfg := d.c.Config()
	if err := d.k.Device.Run(func(c *gpu.Commands) {
		c.Clear(d.most)
		d.pieces(func(g distro.Grid, b kernel.Blocks) {
			of := at(d.state, g.State)
			d.k.DCT(c, d.work, d.spare, at(d.grad, g.Offset), d.bases[b.Rows], d.bases[b.Cols], b)
			d.k.Momentum(c, of, d.work, d.most, b, cfg.Decay, step)
			d.k.Pick(c, of, d.picks.At(g.First*d.each), b, cfg.TopK, d.each, g.Across)
			c.Cut()
		})
	}); err != nil {
		return nil, err
	}
	words, most := make([]uint32, d.picks.Len), make([]float32, 1)
	if err := gpu.Read(words, d.picks); err != nil {
		return nil, err
	}
	if err := gpu.Read(most, d.most); err != nil {
		return nil, err
	}
	if m := float64(most[0]); math.IsNaN(m) || math.IsInf(m, 0) {
		return nil, fmt.Errorf("distro: state: %w", codec.ErrNotFinite)
	}
	if err := codec.CheckRange("magnitude of the state", most[0], distro.StateMax); err != nil {
		return nil, fmt.Errorf("distro: %w: %w", err, codec.ErrTooLarge)
	}
	picks := make([]uint16, 2*len(words))
	for i, w := range words {
		picks[2*i], picks[2*i+1] = uint16(w), uint16(w>>16)
	}
	if err := d.check(s, picks, step); err != nil {
		return nil, err
	}
	payload, err := d.c.Payload(picks)
	if err != nil {
		return nil, differs("vulkan: the device sends what no processor would: " + err.Error())
	}
	return payload, nil
}

// A sampled is a block of the gradient and of the state.
type sampled struct {
	block       int
	grad, state []float32
}

// sample draws a block, whose state must be the host's.
func (d *coder) sample(state []float32) (s sampled, err error) {
	s.block = int(d.random.Uint64n(uint64(d.c.Blocks())))
	b := d.c.Block(s.block)
	s.grad, s.state = make([]float32, b.Rows*b.Cols), make([]float32, b.Rows*b.Cols)
	if err := gpu.ReadRows(s.grad, at(d.grad, b.Offset), b.Stride, b.Cols); err != nil {
		return s, err
	}
	if err := gpu.Read(s.state, at(d.state, b.State)); err != nil {
		return s, err
	}
	return s, same("a state that it kept", s.state, state[b.State:b.State+len(s.state)])
}

// check encodes the sample again on the processor.
func (d *coder) check(s sampled, picks []uint16, step float32) error {
	b, w := d.c.Block(s.block), exact.NewWorker(exact.Kernels()[0])
	x, y := make([]float32, len(s.grad)), make([]float32, len(s.grad))
	d.c.Columns(w, s.block, x, s.grad, 0, b.Cols)
	d.c.Rows(w, s.block, y, x, 0, b.Rows)
	d.c.Momentum(s.state, y, step)
	whole := slices.Clone(s.state)
	d.c.Code(s.block, s.state)
	if err := gpu.Read(x, at(d.state, b.State)); err != nil {
		return err
	}
	if err := same("a state", x, s.state); err != nil {
		return err
	}
	for _, p := range picks[2*d.each*s.block:][:2*d.each] {
		if i := int(p &^ distro.Minus); p != distro.None && i < len(whole) && math.Signbit(float64(whole[i])) != (p >= distro.Minus) {
			return differs(fmt.Sprintf("vulkan: the device sends another sign than the processor, of coefficient %d of block %d", i, s.block))
		}
	}
	return nil
}

// apply updates the parameters by a set that Apply of the codec takes. params are what the host
// knows of them; only a sample is looked at.
func (d *coder) apply(params []float32, payloads [][]byte, lr float32) error {
	if len(payloads) == 0 {
		return nil
	}
	cfg := d.c.Config()
	block := int(d.random.Uint64n(uint64(d.c.Blocks())))
	b := d.c.Block(block)
	want, got := make([]float32, b.Rows*b.Cols), make([]float32, b.Rows*b.Cols)
	if err := gpu.ReadRows(want, at(d.params, b.Offset), b.Stride, b.Cols); err != nil {
		return err
	}
	for i := range b.Rows {
		if err := same("parameters that it kept", want[i*b.Cols:(i+1)*b.Cols], params[b.Offset+i*b.Stride:][:b.Cols]); err != nil {
			return err
		}
	}
	var failed error
	d.pieces(func(g distro.Grid, b kernel.Blocks) {
		if failed == nil {
			failed = d.applyPiece(g, b, payloads, codec.Keep(lr, cfg.WeightDecay), lr, cfg.VotesMax)
		}
	})
	if failed != nil {
		return failed
	}
	if err := gpu.ReadRows(got, at(d.params, b.Offset), b.Stride, b.Cols); err != nil {
		return err
	}
	d.c.ApplyBlock(block, want, payloads, lr)
	return same("parameters of a set", got, want)
}

func (d *coder) applyPiece(g distro.Grid, b kernel.Blocks, payloads [][]byte, keep, lr float32, votesMax int) error {
	count, stride := blocks(g), d.stride(g)
	picks := make([]uint16, 2*stride)
	if err := d.k.Device.Run(func(c *gpu.Commands) { c.Clear(d.work.First(b.Len())) }); err != nil {
		return err
	}
	for len(payloads) > 0 {
		n := min(max(d.votes.Len/stride, 1), len(payloads))
		words := make([]uint32, 0, n*stride)
		for _, p := range payloads[:n] {
			d.c.Picks(picks, p, g.First, g.First+count)
			for i := range stride {
				words = append(words, uint32(picks[2*i])|uint32(picks[2*i+1])<<16)
			}
		}
		if err := gpu.Write(d.votes, words); err != nil {
			return err
		}
		if err := d.k.Device.Run(func(c *gpu.Commands) { d.k.Votes(c, d.work, d.votes, b, n, d.each, g.Across, stride) }); err != nil {
			return err
		}
		payloads = payloads[n:]
	}
	return d.k.Device.Run(func(c *gpu.Commands) {
		direction := d.spare
		if b.Rows > 1 {
			direction = d.work
		}
		d.k.Limit(c, d.work, b, votesMax)
		d.k.Inverse(c, direction, d.spare, d.work, d.bases[b.Rows], d.bases[b.Cols], b)
		d.k.SignStep(c, at(d.params, g.Offset), direction, b, keep, lr)
	})
}

// hashes returns the Merkle leaves of parts, and compares one with the processor's. values, if not
// nil, are the same parts in host memory.
func (d *coder) hashes(table gpu.Words, parts []part, values []float32) ([]wire.Hash, error) {
	if err := d.k.Device.Run(func(c *gpu.Commands) { d.k.Leaves(c, d.leaves, table, d.length) }); err != nil {
		return nil, err
	}
	leaves, err := kernel.ReadLeaves(d.leaves, d.length)
	if err != nil {
		return nil, err
	}
	const floats = merkle.ChunkBytes / 4
	i := int(d.random.Uint64n(uint64(len(leaves))))
	from, to := i*floats, min((i+1)*floats, d.length)
	if values == nil {
		values, to, from = make([]float32, to-from), to-from, 0
		if err := readFlat(values, parts, i*floats); err != nil {
			return nil, err
		}
	}
	if merkle.Leaf(tensor.Bytes(values[from:to])) != leaves[i] {
		return nil, differs(fmt.Sprintf("vulkan: the device hashes chunk %d of a vector to other bits than the processor", i))
	}
	return leaves, nil
}

// readFlat fills dst with elements from number from on.
func readFlat(dst []float32, parts []part, from int) error {
	for _, p := range parts {
		low, high := max(p.from, from), min(p.from+p.at.Len, from+len(dst))
		if low >= high {
			continue
		}
		if err := gpu.Read(dst[low-from:high-from], p.at.At(low-p.from)); err != nil {
			return err
		}
	}
	return nil
}

// Code makes the model run c instead of the codec that it was made with, and reports whether it
// can.
func (m *Model) Code(c codec.Codec) bool {
	d, ok := c.(*distro.Codec)
	if !ok || m.m.coder == nil || d.Header() != m.codec.Header() || d.Config() != m.codec.Config() {
		return false
	}
	m.m.coder.c = d
	return true
}

// Holds implements cpu.Coder.
func (m *Model) Holds(version uint64) bool { return version != 0 && version == m.version }

// Encode implements cpu.Coder.
func (m *Model) Encode(state, after []float32, version, next uint64, step float32) (payload []byte, gradient, leaves []wire.Hash, err error) {
	d := m.m.coder
	if version == 0 || version != m.stateVersion {
		for _, p := range d.state {
			if err := gpu.Write(p.at, state[p.from:p.from+p.at.Len]); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	m.stateVersion = 0
	if payload, err = d.encode(state, step); err != nil {
		return nil, nil, nil, err
	}
	if gradient, err = d.hashes(d.tables[1], d.grad, nil); err != nil {
		return nil, nil, nil, err
	}
	if err = readFlat(after, d.state, 0); err != nil {
		return nil, nil, nil, err
	}
	leaves, err = d.hashes(d.tables[2], d.state, after)
	if err == nil {
		m.stateVersion = next
	}
	return payload, gradient, leaves, err
}

// Apply implements cpu.Coder.
func (m *Model) Apply(params, after []float32, next uint64, payloads [][]byte, lr float32) (leaves []wire.Hash, err error) {
	d := m.m.coder
	m.params, m.version = nil, 0
	if err := d.apply(params, payloads, lr); err != nil {
		return nil, err
	}
	if err := readFlat(after, d.params, 0); err != nil {
		return nil, err
	}
	leaves, err = d.hashes(d.tables[0], d.params, after)
	if err == nil {
		m.version = next
	}
	return leaves, err
}

// proveCodec encodes the model's gradient, applies it twice, and compares what each step leaves and
// its hashes with the processor's.
func proveCodec(m *Model, grad, params []float32, class string) (f kernel.Finding, err error) {
	f = kernel.Finding{Operation: "codec distro, and hashes", Class: class, Compared: 2 * len(grad)}
	wrong := func(what string) {
		f.Wrong++
		f.Example = what
	}
	const lr = 0.01
	state, after := slices.Clone(params), make([]float32, len(params))
	norm, err := m.Norm()
	if err != nil {
		return f, err
	}
	scale, err := codec.Factor(norm, m.codec.Config().ClipNorm)
	if err != nil {
		return f, err
	}
	payload, gradient, leaves, err := m.Encode(state, after, 1, 2, lr*scale)
	if errors.As(err, new(differs)) {
		wrong(err.Error())
		return f, nil
	}
	if err != nil {
		return f, err
	}
	want, err := m.codec.Encode(nil, state, grad, lr)
	if err != nil {
		return f, err
	}
	if !bytes.Equal(payload, want) || !slices.Equal(after, state) {
		wrong("the payload or the state")
	}
	if !slices.Equal(gradient, merkle.BlobLeaves(tensor.Bytes(grad))) || !slices.Equal(leaves, merkle.BlobLeaves(tensor.Bytes(state))) {
		wrong("a hash")
	}
	next := slices.Clone(params)
	_, err = m.Apply(params, after, 2, [][]byte{want, want}, lr)
	if errors.As(err, new(differs)) {
		wrong(err.Error())
		return f, nil
	}
	if err := errors.Join(err, m.codec.Apply(next, [][]byte{want, want}, lr)); err != nil {
		return f, err
	}
	if !slices.Equal(after, next) {
		wrong("the parameters of a set")
	}
	return f, nil
}
