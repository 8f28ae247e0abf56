package codec

import (
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// A Kind is a codec that a specification can name.
type Kind struct {
	// Name is the value of optimizer.codec and the name of the options' table.
	Name string
	// Defaults are the options of a specification that sets none, as a comparable struct. Its toml
	// tags are the keys of the table optimizer.<Name>.
	Defaults Options
	// Disputable returns the number of blocks into which the codec cuts the parameters, without
	// making the codec, which is a [Disputable]. It is nil if steps cannot be disputed.
	Disputable func(o Options, layout tensor.Layout) (blocks uint64)
	// Sliceable reports whether the codec seals updates for an exchange by buckets: it is a
	// [Sliceable].
	Sliceable bool
	// Followable reports whether the update of an accepted set can be written down: the codec that
	// the options make is a [Followable].
	Followable bool
}

// Options are the settings of a codec in a specification.
type Options interface {
	// Kind returns the codec's kind, of which only Followable depends on the options.
	Kind() Kind
	// Check returns an error that begins with the key at fault, or nil.
	Check() error
	// StateLen returns the number of floats in a member's optimizer state, for n parameters.
	StateLen(n int) int
	// CheckLR returns an error unless lr is a learning rate that the codec can compute with.
	CheckLR(lr float32) error
	// New makes the codec for a layout.
	New(layout tensor.Layout, pool *exact.Pool) (Codec, error)
}

// A Block is a rectangle of a tensor that a [Disputable] transforms and codes by itself.
type Block struct {
	// Offset is the offset of its first element in the flat gradient. Stride is the distance from
	// one of its rows to the next.
	Offset, Stride int
	Rows, Cols     int
	State          int // offset of its coefficients, row-major, in the private state
	Bit, Bits      int // offset and length of its code, in the bits of a payload after the header
}

// A Disputable is a codec whose Encode a referee can judge in parts. Encode clips the gradient and
// then runs Columns, Rows, Momentum and Code on each block. These give the same bits as Encode.
type Disputable interface {
	Codec
	// Blocks returns the number of blocks. They lie in the state, and their codes in a payload, one
	// after another without gaps.
	Blocks() int
	Block(i int) Block
	// Header returns the header of every payload.
	Header() Header
	// Clipping returns the norm to which Encode clips the gradient, or 0 for no clipping, and the
	// weight decay, which bounds the learning rate (CheckLR).
	Clipping() (norm, weightDecay float32)
	// CheckMagnitude returns an error unless Encode accepts a state whose greatest magnitude is
	// most.
	CheckMagnitude(most float32) error
	// Columns computes columns [from, to) of the transform of block i; Rows then computes rows
	// [from, to). out and x are row-major. After both, out holds the block's coefficients.
	Columns(w *exact.Worker, i int, out, x []float32, from, to int)
	Rows(w *exact.Worker, i int, out, x []float32, from, to int)
	// Momentum adds a block's coefficients to its momentum. step is the learning rate times the
	// factor of Clip, rounded.
	Momentum(momentum, coefficients []float32, step float32)
	// Code removes what is sent from the momentum of block i, and returns its code, lowest word
	// first.
	Code(i int, momentum []float32) []uint64
}

// A Range is the positions [From, To) of the flat parameters, all in one tensor.
type Range struct {
	Tensor   int // its number in the layout
	From, To int
}

// Len returns the number of positions.
func (r Range) Len() int { return r.To - r.From }

// A Sliceable is a codec for runs that exchange by buckets. Its Encode seals an update; Check and
// Apply take reveals: the part of a sealed update that a seed draws, with proofs.
type Sliceable interface {
	Codec
	// Root returns what a member commits to for a sealed update.
	Root(sealed []byte) wire.Hash
	// RevealLen returns the length of every reveal in bytes, and StateSliceLen that of the longest
	// state slice.
	RevealLen() int
	StateSliceLen() int
	// Reveal appends to dst the reveal of a sealed update: what the seed draws of it.
	Reveal(dst, sealed []byte, seed wire.Hash) []byte
	// Open returns the root and the seed that a reveal belongs to.
	Open(reveal []byte) (root, seed wire.Hash, err error)
	// Settle subtracts what the seed's slice sent from a member's state, before its next Encode.
	Settle(state []float32, seed wire.Hash)
	// Ranges returns the ranges that the seed draws. Values appends to dst a reveal's values on
	// them.
	Ranges(seed wire.Hash) []Range
	Values(dst []float32, reveal []byte) []float32
	// StateSlice returns the parameters on the ranges that the seed draws. PatchState copies them
	// into params.
	StateSlice(params []float32, seed wire.Hash) []byte
	PatchState(params []float32, stateSlice []byte) error
}

// A Followable is a codec whose update by a set of payloads can be written down, so that a member
// without the payloads gets the same parameters from it.
type Followable interface {
	Codec
	// UpdateLen returns the length in bytes of an update that moves every weight, the shortest.
	// Most are little longer. UpdateMax returns that of the longest.
	UpdateLen() int
	UpdateMax() int
	// Update appends to dst the update of the payloads of one round, of which there is at least
	// one. It checks all of them first; if it fails, dst is unchanged.
	Update(dst []byte, payloads [][]byte) ([]byte, error)
	// CheckUpdate returns an error unless update is well formed. Everything that Update writes is,
	// and no two well-formed updates mean the same.
	CheckUpdate(update []byte) error
	// Follow gives params the same bits as Apply with the payloads of the update. It checks the
	// update first; if it fails, params is unchanged. It panics if params has the wrong length.
	Follow(params []float32, update []byte, lr float32) error

	// An update can also be made in up to SlicesMax slices, each from the same bytes of all payloads.
	// SliceRange returns the bytes [from, to) of a payload on which slice i of n depends.
	SlicesMax() int
	SliceRange(i, n int) (from, to int)
	// UpdateSlice appends to dst slice i of n, from that range of each payload. The payloads do not
	// have to be well formed, and there may be none: a code that is out of range votes for nothing.
	// UpdateSliceMax returns the length of the longest.
	UpdateSlice(dst []byte, ranges [][]byte, i, n int) ([]byte, error)
	UpdateSliceMax(i, n int) int
	// JoinUpdate appends to dst the update with these slices, which it checks. If it fails, dst is
	// unchanged.
	JoinUpdate(dst []byte, slices [][]byte) ([]byte, error)
}

// PieceBytes is the length of the pieces of a payload that are under its root where members fetch
// ranges of payloads.
const PieceBytes = 1 << 10

// PayloadRoot returns what a commitment names a payload by: the root over its pieces, or its
// merkle.BlobRoot.
func PayloadRoot(payload []byte, pieces bool) wire.Hash {
	if pieces {
		return merkle.Root(merkle.PieceLeaves(payload, PieceBytes))
	}
	return merkle.BlobRoot(payload)
}

// Find returns the kind with a name.
func Find(kinds []Kind, name string) (k Kind, ok bool) {
	for _, k := range kinds {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// Names lists the names of kinds for an error.
func Names(kinds []Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = strconv.Quote(k.Name)
	}
	return strings.Join(names, ", ")
}
