package check

import (
	"errors"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/wire"
)

// Program is the smallest step with all stages of a dispute: two operations of one slice each. The
// first is a hash of the case, the second the outcome. It is the referee of its disputes.
type Program struct{}

const ops = 2

func (Program) Ops(uint32) uint32                          { return ops }
func (Program) Tiles(dispute.Case, uint32) uint32          { return 1 }
func (Program) Slices(dispute.Case, uint32, uint32) uint32 { return 1 }

var errEvidence = errors.New("evidence proves nothing")

// Judge implements dispute.Referee. The evidence for the outcome is the first operation's
// value, which must be in the accuser's trace, and its proof.
func (Program) Judge(c dispute.Case, op, _, _ uint32, root wire.Hash, evidence []byte) (wire.Hash, error) {
	if op == 0 {
		return computed(c), nil
	}
	r := wire.NewReader(evidence)
	value := r.Hash()
	var proof []wire.Hash
	for r.Len() > 0 && r.Err() == wire.OK {
		proof = append(proof, r.Hash())
	}
	if r.Err() != wire.OK || !bisect.Check(root, value, 0, ops, proof) {
		return wire.Hash{}, errEvidence
	}
	return dispute.Outcome(conclude(c.Commitment, value)), nil
}

// computed is the true value of the first operation.
func computed(c dispute.Case) wire.Hash {
	return wire.Sum("check/step", c.Commitment.Share[:], c.Commitment.Params[:], wire.AppendU32(nil, uint32(c.Commitment.Member)))
}

// Gradient is the root that opens the work of a result with this first value.
func Gradient(value wire.Hash) wire.Hash { return wire.Sum("check/gradient", value[:]) }

// conclude fills in the result that follows from the first operation's value.
func conclude(c dispute.Commitment, value wire.Hash) dispute.Commitment {
	c.Payload, c.PayloadBytes = wire.Sum("check/payload", value[:]), 100
	c.State = wire.Sum("check/state", value[:])
	c.Work = dispute.WorkHash(c.Run, c.Round, c.Member, Gradient(value))
	return c
}

// Trace is one party's computation of a case.
type Trace struct {
	Name   string
	Leaves []wire.Hash
	Value  wire.Hash          // of the first operation
	Result dispute.Commitment // what the trace ends with, filled in
}

// Root is the root of the tree of operations.
func (t Trace) Root() wire.Hash { return bisect.Root(t.Leaves) }

// Traces are the ways in which the case of a check may be computed, the true one first.
func Traces(c dispute.Case) []Trace {
	value := computed(c)
	bent := wire.Sum("check/bent", value[:])
	right, wrong := conclude(c.Commitment, value), conclude(c.Commitment, bent)
	o, x := dispute.Outcome(right), dispute.Outcome(wrong)
	return []Trace{
		{"true", []wire.Hash{value, o}, value, right},
		{"bent", []wire.Hash{bent, x}, bent, wrong},                    // a lie from the start
		{"outcome", []wire.Hash{value, x}, value, wrong},               // a lie at the end
		{"value", []wire.Hash{bent, o}, bent, right},                   // a lie that ends in the truth
		{"padding", []wire.Hash{value, o, wire.Hash{1}}, value, right}, // a leaf where none may be
	}
}

// Evidence opens the second operation.
func (t Trace) Evidence() []byte {
	b := wire.AppendHash(nil, t.Value)
	for _, h := range bisect.Prove(t.Leaves, 0) {
		b = wire.AppendHash(b, h)
	}
	return b
}
