// Package engine is the seam between a participant and what computes for it: one share of one
// round, the accepted set's effect on the parameters, and what judges of results recompute.
//
// A step is one function,
//
//	(parameters, optimizer state, sequences, step) -> (payload, new optimizer state)
//
// with the same bits on every machine and in every engine, so that anyone can compute it again.
// The definition is package llama's and the codec's; engine/cpu computes it on processors, and
// engine/enginetest has the tests that every engine must pass.
//
// A [Run] describes what an engine computes. An engine makes the codec itself, so that it may run
// the codec where it keeps the parameters. Parameters and optimizer states are behind the handle
// [Vector], so that they stay where an engine computes. Callers read them in host memory only to
// serve, save or compare them.
package engine

import (
	"context"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

// A Run is the model, the optimizer and the data that an engine computes with.
type Run struct {
	Model    llama.Config
	Base     []float32 // parameters of the frozen model, if Model has adapters
	Codec    codec.Options
	Inner    *optim.Inner // nil: a share is one gradient
	Schedule optim.Schedule
	Data     Source
	HeldOut  Source // may be nil
	// HeldOutSequences is the number of sequences of the held-out split that a measurement reads.
	HeldOutSequences uint64
	Sequence         int // tokens trained on in one sequence
}

// A Vector is the parameters of the model or a member's optimizer state, in the memory of the
// engine that made it. Only methods of the engine change it. Its own methods may be called from
// several goroutines while nothing changes it.
type Vector interface {
	// Len returns the number of elements.
	Len() int
	// Host returns elements [from, to) in host memory. The caller must not change them; they are
	// valid until the vector changes.
	Host(from, to int) []float32
}

// Values returns all elements of v in host memory, as [Vector.Host] does. It returns nil for nil.
func Values(v Vector) []float32 {
	if v == nil {
		return nil
	}
	return v.Host(0, v.Len())
}

// Late is a vector for Step that has its elements only once Fill was called. A step has the
// parameters filled when it begins, and again if it begins again, and the state once it has the
// gradient. So where a share is one gradient, both may be in the same memory.
type Late struct {
	Vector
	Fill func() error
}

// Ready returns v, filled if it is Late.
func Ready(v Vector) (Vector, error) {
	if l, ok := v.(Late); ok {
		return l.Vector, l.Fill()
	}
	return v, nil
}

// An Engine computes for one run. One goroutine at a time may call its methods, except that
// Vector's methods, Check, Leaves, NewVector, Load, Fill, Trace, CheckUpdate and the Slicer's
// methods may run beside any other on vectors that nothing changes.
type Engine interface {
	// ParamsLen returns the number of parameters, StateLen the number of elements in a member's
	// optimizer state, and PayloadMax the length in bytes of the longest payload.
	ParamsLen() int
	StateLen() int
	PayloadMax() int
	// Base returns the parameters of the frozen model, nil in a run that trains all parameters.
	Base() []float32

	// NewVector returns a vector of n zeros.
	NewVector(n int) Vector
	// Load returns a vector of values, which now belong to the engine.
	Load(values []float32) Vector
	// Fill sets v to the little-endian floats that read fills its argument with. After an error the
	// elements of v are arbitrary.
	Fill(v Vector, read func([]byte) error) error
	// Copy sets to to the elements of from, which has the same length, or to zeros if from is nil.
	Copy(to, from Vector)
	// Leaves returns the Merkle leaves of v's little-endian bytes, in chunks of merkle.ChunkBytes.
	Leaves(v Vector) []wire.Hash

	// Step computes the share given by spans of sequence indexes on params, and updates state, the
	// member's optimizer state, in place. After an error (ctx ended, data missing, a gradient that
	// is not finite) state is as it was, unless it is Late.
	Step(ctx context.Context, params, state Vector, spans []batch.Span, step uint32) (Result, error)
	// Apply turns params into the next round's by the payloads of an accepted set in canonical
	// order. The payloads were made in that step. After an error params is as it was.
	Apply(params Vector, payloads [][]byte, step uint32) error
	// Check returns nil if payload is well formed, and otherwise what is wrong with it.
	Check(payload []byte) error

	// Gradient computes the gradient of a share on params. It needs no member's state.
	Gradient(ctx context.Context, params Vector, spans []batch.Span) (Gradient, error)
	// Loss returns the mean loss on the sequences of spans, in nats a learnt token.
	Loss(ctx context.Context, params Vector, spans []batch.Span) (float64, error)
	// HeldOut returns the mean loss on the first sequences of the held-out split, in nats a token.
	HeldOut(ctx context.Context, params Vector) (float32, error)

	// Slicer returns what seals and reveals the run's updates. ok is false if the run's codec sends
	// them whole.
	Slicer() (s Slicer, ok bool)
	// Follower returns what writes down and applies the run's updates. ok is false if the run's codec
	// cannot write them down.
	Follower() (f Follower, ok bool)
	// Trace runs the program of a step and returns its trace.
	Trace(ctx context.Context, p trace.Program, src trace.Sources) (*trace.Trace, error)

	// Close frees what the engine holds. Only reads of vectors are valid after it.
	Close()
}

// Result is what a step yields besides the new optimizer state.
type Result struct {
	Payload []byte
	Loss    float32 // mean over the share, nats a learnt token
	Tokens  uint64  // trained on

	// Gradient is the merkle.BlobRoot of the share's mean gradient before clipping, or of its
	// pseudo-gradient. Only those who computed the share know it, so a commitment to it
	// (dispute.WorkHash) proves that its author computed.
	Gradient wire.Hash

	// LR is the step's learning rate, and GradNorm the Euclidean norm of what Gradient is the root
	// of. They are for display; no rule depends on them.
	LR       float32
	GradNorm float64
}

// Gradient is what a share's gradient shows to a judge who recomputes it.
type Gradient struct {
	// Values is the mean over the share's sequences, before clipping. It is valid until the engine
	// computes again.
	Values Vector
	Root   wire.Hash // merkle.BlobRoot of Values, which opens the Work of a commitment to the share
	Loss   float32   // mean over the share, nats a learnt token
}

// Slicer is what an engine does for a run that exchanges by buckets: [codec.Sliceable]
// defines each method.
type Slicer interface {
	// Root returns what a member commits to for a sealed update, the Payload of a Result.
	Root(sealed []byte) wire.Hash
	// RevealLen returns the length of every reveal: the PayloadBytes of a commitment.
	RevealLen() int
	Reveal(dst, sealed []byte, seed wire.Hash) []byte
	Open(reveal []byte) (root, seed wire.Hash, err error)
	Ranges(seed wire.Hash) []codec.Range
	Values(dst []float32, reveal []byte) []float32
	PatchState(params []float32, stateSlice []byte) error
	StateSliceLen() int

	// Settle takes what a slice has sent out of the member's state, before its next step.
	Settle(state Vector, seed wire.Hash)
	// StateSlice encodes the parameters where the seed draws.
	StateSlice(params Vector, seed wire.Hash) []byte
}

// Follower is what an engine does for a run in which some members apply updates in place of the
// payloads: [codec.Followable] defines each method.
type Follower interface {
	UpdateLen() int
	UpdateMax() int
	Update(dst []byte, payloads [][]byte) ([]byte, error)
	CheckUpdate(update []byte) error
	SlicesMax() int
	SliceRange(i, n int) (from, to int)
	UpdateSlice(dst []byte, ranges [][]byte, i, n int) ([]byte, error)
	UpdateSliceMax(i, n int) int
	JoinUpdate(dst []byte, slices [][]byte) ([]byte, error)

	// Follow turns params into the next round's by the update of an accepted set whose payloads were
	// made in that step. After an error params is as it was.
	Follow(params Vector, update []byte, step uint32) error
}

// Source gives sequences of tokens by index; data.Set implements it. If a source has a method
// Ahead(first, n uint64), an engine calls it with each span of a share before it reads the span.
type Source interface {
	// Read fills dst, of the run's sequence length plus one, with sequence i.
	Read(i uint64, dst []uint32) error
}
