package coordinator

import "github.com/entrain-network/entrain/wire"

// Case is what a dispute is about: a member's share of a step, and what it committed to.
type Case struct {
	Commitment Commitment
	Step       uint32 // which of the run's rounds with training it is
	Sequences  uint32 // number of sequences in the share
}

// Referee knows the program that a step is: the list of operations whose values make the trace (see the package comment).
// The host makes one from the run's specification. It is pure: all replicas get the same answers. It answers whatever it is
// asked, without a panic: 1 to a number that is out of its range, and an error where there is nothing to judge.
type Referee interface {
	// Ops returns how many operations the step of a share of so many sequences has; at least one.
	Ops(sequences uint32) uint32
	// Tiles returns in how many tiles the value of operation op is cut; at least one.
	Tiles(c Case, op uint32) uint32
	// Slices returns in how many steps a tile is made; at least one.
	Slices(c Case, op, tile uint32) uint32
	// Judge recomputes one slice from evidence. Its inputs must be proven to be under trace, the accuser's root, or under
	// the hashes of the commitment and the specification. It returns the true hash of the slice. An error means that the
	// evidence proves nothing.
	Judge(c Case, op, tile, slice uint32, trace wire.Hash, evidence []byte) (wire.Hash, error)
}
