package dispute

import (
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/wire"
)

// Case is the subject of a dispute: a member's share of a step, and its commitment.
type Case struct {
	Commitment Commitment
	Step       record.Step // number of the round among those with training
	Sequences  uint32      // number of sequences in the share
}

// Referee knows the program of a step: the operations whose values make the trace (see the
// coordinator's package comment). The host makes one from the run's specification. It is pure, so
// all replicas get the same answers. It never panics: an argument out of range gets 1, or an error
// where there is nothing to judge.
type Referee interface {
	// Ops returns the number of operations in the step of a share, at least 1.
	Ops(sequences uint32) uint32
	// Tiles returns the number of tiles of the value of operation op, at least 1.
	Tiles(c Case, op uint32) uint32
	// Slices returns the number of steps in which a tile is made, at least 1.
	Slices(c Case, op, tile uint32) uint32
	// Judge recomputes one slice from evidence and returns its true hash. The evidence must prove
	// that its inputs are under trace, the accuser's root, or under the hashes of the commitment
	// and the specification. An error means that the evidence proves nothing.
	Judge(c Case, op, tile, slice uint32, trace wire.Hash, evidence []byte) (wire.Hash, error)
}
