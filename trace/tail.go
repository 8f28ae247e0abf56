package trace

import (
	"errors"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Share identifies a member's step. The proof of work and the outcome of a commitment contain it.
type Share struct {
	Run           wire.Hash
	Round, Member uint32
}

// codecTail is the tail of a codec.Disputable. Its operations are, in order,
//
//	leaves of the gradient, and their root by levels of eight: the proof of work
//	squares of each segment of the gradient, and their sum: the norm
//	the old state by blocks, the greatest magnitude of each block and of the state
//	the size of the step: learning rate times clip factor; none if gradient or state are broken
//	coefficients, momentum, code and new state of each block
//	bytes of the payload, their leaves and root; leaves and root of the new state
//	the proof of work, the outcome
type codecTail struct {
	*Tails
	lr   float32
	plan []func(at tailSite) Op
}

// Tails makes the tails of a run's steps. It computes once what they have in common.
type Tails struct {
	codec  codec.Disputable
	flat   flat
	groups []int // first block of each group that is read together, then the number of blocks
	piece  int   // bytes of a payload under a leaf of its root
}

// NewTails returns the tails of a codec for its layout. It returns an error if the layout is not
// the codec's.
func NewTails(c codec.Disputable, layout tensor.Layout) (*Tails, error) {
	if layout.Len() == 0 || layout.Len() != c.StateLen() {
		return nil, errors.New("trace: the codec was made for a different layout")
	}
	return &Tails{codec: c, flat: newFlat(layout), groups: groups(c), piece: merkle.ChunkBytes}, nil
}

// CommitPieces has commitments name payloads by the root over their pieces of codec.PieceBytes, as
// in a run of slices, and not by merkle.BlobRoot.
func (t *Tails) CommitPieces() { t.piece = codec.PieceBytes }

// tailSite is the place of a tail in a program.
type tailSite struct {
	base     uint32
	gradient func(tensor int) uint32
}

// value returns the read of a tile of operation t of the tail.
func (p tailSite) value(t, tile uint32) Read { return Read{Source: Value, Op: p.base + t, Index: tile} }

// values returns the reads of tiles [from, to) of operation t.
func (p tailSite) values(t, from, to uint32) []Read {
	reads := make([]Read, 0, to-from)
	for ; from < to; from++ {
		reads = append(reads, p.value(t, from))
	}
	return reads
}

// Tail returns the tail of a step with learning rate lr. Its outcome is that of a commitment to the
// result of codec.Encode (dispute.Outcome). If Encode would refuse the step, the outcome is the
// zero hash, to which nobody can commit.
func (t *Tails) Tail(lr float32, share Share) Tail {
	c := t.codec
	d := &codecTail{Tails: t, lr: lr}
	gradient := d.gradientRoot()
	norm := d.norm()
	old, most := d.oldState()
	step := d.step(norm, most)
	momentum := d.momentum(old, step)
	codes := d.codes(momentum)
	left := d.add(d.leftOp(momentum))
	bytes := d.add(d.payloadOp(codes))
	payload := d.blob("payload", func(at tailSite) stream { return payloadBytes{at, bytes, c.PayloadMax(), t.piece} }, ceil(c.PayloadMax(), t.piece))
	state := d.blob("new state", func(at tailSite) stream { return stateBytes{d, at, left} }, chunks(c.StateLen()*4))
	work := d.add(workOp(share, gradient))
	d.add(outcomeOp(payload, uint32(c.PayloadMax()), state, work, step))
	return d
}

// GradientTails makes the tails of steps that are disputed up to their gradient only, because
// nobody serves the optimizer states that the rest begins from.
type GradientTails struct{ flat flat }

// NewGradientTails returns the tails for a layout, which must not be empty.
func NewGradientTails(layout tensor.Layout) (*GradientTails, error) {
	if layout.Len() == 0 {
		return nil, errors.New("trace: the layout is empty")
	}
	return &GradientTails{newFlat(layout)}, nil
}

// Tail returns the tail of the step that c commits to. Of its outcome only the work follows from
// the gradient; payload and state are what c says they are.
func (t *GradientTails) Tail(c dispute.Commitment) Tail {
	d := &codecTail{Tails: &Tails{flat: t.flat}}
	gradient := d.gradientRoot()
	work := d.add(workOp(Share{Run: c.Run, Round: uint32(c.Round), Member: uint32(c.Member)}, gradient))
	d.add(claimOp(c, work))
	return d
}

// gradientRoot adds the operations that hash the gradient.
func (d *codecTail) gradientRoot() uint32 {
	return d.blob("gradient", func(at tailSite) stream { return gradientBytes{d.flat, at} }, chunks(d.flat.n*4))
}

// Len implements Tail.
func (d *codecTail) Len() uint32 { return uint32(len(d.plan)) }

// Op implements Tail.
func (d *codecTail) Op(t, base uint32, gradient func(tensor int) uint32) Op {
	return d.plan[t](tailSite{base, gradient})
}

// add appends an operation and returns its number.
func (d *codecTail) add(op func(at tailSite) Op) uint32 {
	d.plan = append(d.plan, op)
	return uint32(len(d.plan) - 1)
}

// funcOp is an Op funcOp of functions. If slices is nil, each tile has one slice.
type funcOp struct {
	name   string
	tiles  uint32
	slices func(tile uint32) uint32
	words  func(tile, slice uint32) int
	reads  func(tile, slice uint32) []Read
	step   func(w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32
}

func (m funcOp) Name() string  { return m.name }
func (m funcOp) Tiles() uint32 { return m.tiles }

func (m funcOp) Slices(tile uint32) uint32 {
	if m.slices == nil {
		return 1
	}
	return m.slices(tile)
}

func (m funcOp) Words(tile, slice uint32) int    { return m.words(tile, slice) }
func (m funcOp) Reads(tile, slice uint32) []Read { return m.reads(tile, slice) }

func (m funcOp) Step(w *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
	return m.step(w, tile, slice, acc, in)
}

// words returns a Words function for tiles that all have n words.
func words(n int) func(tile, slice uint32) int { return func(uint32, uint32) int { return n } }

// eights returns the number of slices that read n tiles, eight at a time.
func eights(n uint32) uint32 { return (n + ReadsMax - 1) / ReadsMax }

// eight returns the range of tiles that a slice reads.
func eight(n, slice uint32) (from, to uint32) { return slice * ReadsMax, min((slice+1)*ReadsMax, n) }

// chain is an operation with one tile of size words, which reads all n tiles of operation of, eight
// at a time.
func chain(at tailSite, name string, size int, of, n uint32, step func(acc []uint32, in [][]uint32) []uint32) Op {
	return funcOp{
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

// chunks returns the number of chunks of a blob with the given size in bytes.
func chunks(bytes int) uint32 { return uint32(merkle.BlobChunks(uint64(bytes))) }

// ceil returns the number of pieces of a payload.
func ceil(bytes, piece int) uint32 { return uint32((bytes + piece - 1) / piece) }
