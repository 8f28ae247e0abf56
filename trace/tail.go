package trace

import (
	"errors"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Share says whose step a program is. A commitment's proof of work and its outcome contain it.
type Share struct {
	Run           wire.Hash
	Round, Member uint32
}

// codecTail is the tail of codec/distro. Its operations are, in this order,
//
//	gradient's leaves, and its root by levels of eight: the proof of work
//	squares of each segment of the gradient, and their sum: the norm
//	each block of the old state, its greatest magnitude, and that of the state
//	the step: learning rate times clip factor, or that there is none because gradient or state are broken
//	each block's coefficients, its momentum, its code, and what it leaves in the state
//	the payload's bytes, their leaves and root; the new state's leaves and root
//	the proof of work, the outcome
type codecTail struct {
	*Tails
	lr   float32
	plan []func(at tailSite) Op
}

// Tails makes the tails of steps of one run: what they have in common is worked out once.
type Tails struct {
	codec  codec.Disputable
	flat   flat
	groups []int // blocks read together: group i begins with block groups[i]; the last element is the number of blocks
}

// NewTails makes the tails of a codec for its layout.
func NewTails(c codec.Disputable, layout tensor.Layout) (*Tails, error) {
	if layout.Len() == 0 || layout.Len() != c.StateLen() {
		return nil, errors.New("trace: the codec is not that of the layout")
	}
	return &Tails{codec: c, flat: newFlat(layout), groups: groups(c)}, nil
}

// tailSite is where a tail lies in a program.
type tailSite struct {
	base     uint32
	gradient func(tensor int) uint32
}

// value reads a tile of operation t of the tail.
func (p tailSite) value(t, tile uint32) Read { return Read{Source: Value, Op: p.base + t, Index: tile} }

// values reads tiles [from, to).
func (p tailSite) values(t, from, to uint32) []Read {
	reads := make([]Read, 0, to-from)
	for ; from < to; from++ {
		reads = append(reads, p.value(t, from))
	}
	return reads
}

// NewTail is the tail of one step: see Tails.Tail.
func NewTail(c codec.Disputable, layout tensor.Layout, lr float32, share Share) (Tail, error) {
	tails, err := NewTails(c, layout)
	if err != nil {
		return nil, err
	}
	return tails.Tail(lr, share), nil
}

// Tail is the tail of a step at learning rate lr. Its outcome is that of a commitment to what
// codec.Encode gives (coordinator.Outcome); of a step which Encode refuses, it is the zero hash, to
// which nobody can commit.
func (t *Tails) Tail(lr float32, share Share) Tail {
	c := t.codec
	d := &codecTail{Tails: t, lr: lr}
	gradient := d.blob("gradient", func(at tailSite) stream { return gradientBytes{d.flat, at} }, d.flat.n*4)
	norm := d.norm()
	old, most := d.oldState()
	step := d.step(norm, most)
	momentum := d.momentum(old, step)
	codes := d.codes(momentum)
	left := d.add(d.leftOp(momentum))
	bytes := d.add(d.payloadOp(codes))
	payload := d.blob("payload", func(at tailSite) stream { return payloadBytes{at, bytes, c.PayloadMax()} }, c.PayloadMax())
	state := d.blob("new state", func(at tailSite) stream { return stateBytes{d, at, left} }, c.StateLen()*4)
	work := d.add(workOp(share, gradient))
	d.add(outcomeOp(payload, uint32(c.PayloadMax()), state, work, step))
	return d
}

// Len is the number of operations.
func (d *codecTail) Len() uint32 { return uint32(len(d.plan)) }

// Op is operation t of the tail.
func (d *codecTail) Op(t, base uint32, gradient func(tensor int) uint32) Op {
	return d.plan[t](tailSite{base, gradient})
}

// add appends an operation and returns its number.
func (d *codecTail) add(op func(at tailSite) Op) uint32 {
	d.plan = append(d.plan, op)
	return uint32(len(d.plan) - 1)
}

// made is an Op put together from functions. Without slices, each tile is made in one.
type made struct {
	name   string
	tiles  uint32
	slices func(tile uint32) uint32
	words  func(tile, slice uint32) int
	reads  func(tile, slice uint32) []Read
	step   func(w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32
}

func (m made) Name() string  { return m.name }
func (m made) Tiles() uint32 { return m.tiles }

func (m made) Slices(tile uint32) uint32 {
	if m.slices == nil {
		return 1
	}
	return m.slices(tile)
}

func (m made) Words(tile, slice uint32) int    { return m.words(tile, slice) }
func (m made) Reads(tile, slice uint32) []Read { return m.reads(tile, slice) }

func (m made) Step(w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	return m.step(w, tile, slice, acc, in)
}

// words is the Words of tiles that all have n words.
func words(n int) func(tile, slice uint32) int { return func(uint32, uint32) int { return n } }

// eights is the number of slices in which n tiles are read, eight at a time, and eight those read
// in one of them.
func eights(n uint32) uint32 { return (n + ReadsMax - 1) / ReadsMax }

func eight(n, slice uint32) (from, to uint32) { return slice * ReadsMax, min((slice+1)*ReadsMax, n) }

// chain is an operation of one tile of so many words that goes through all n tiles of operation of,
// eight at a time.
func chain(at tailSite, name string, size int, of, n uint32, step func(acc []uint32, in [][]uint32) []uint32) Op {
	return made{
		name: name, tiles: 1, words: words(size),
		slices: func(uint32) uint32 { return eights(n) },
		reads: func(_, slice uint32) []Read {
			from, to := eight(n, slice)
			return at.values(of, from, to)
		},
		step: func(_ *exact.Worker, _, _ uint32, acc []uint32, in [][]uint32) []uint32 {
			if acc == nil {
				acc = make([]uint32, size)
			}
			return step(acc, in)
		},
	}
}

// chunks is the number of chunks of a blob of so many bytes.
func chunks(bytes int) uint32 { return uint32(merkle.BlobChunks(uint64(bytes))) }
