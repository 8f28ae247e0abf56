package check

import (
	"errors"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/wire"
)

// program is the smallest step with all stages of a dispute: two operations of one slice each. The
// first is a hash of the case, the second the outcome. It is the referee of its disputes.
type program struct{}

const ops = 2

func (program) Ops(uint32) uint32                          { return ops }
func (program) Tiles(dispute.Case, uint32) uint32          { return 1 }
func (program) Slices(dispute.Case, uint32, uint32) uint32 { return 1 }

var errEvidence = errors.New("evidence proves nothing")

// Judge implements dispute.Referee. The evidence for the outcome is the first operation's
// value, which must be in the accuser's trace, and its proof.
func (program) Judge(c dispute.Case, op, _, _ uint32, root wire.Hash, evidence []byte) (wire.Hash, error) {
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

// gradient is the root that opens the work of a result with this first value.
func gradient(value wire.Hash) wire.Hash { return wire.Sum("check/gradient", value[:]) }

// conclude fills in the result that follows from the first operation's value.
func conclude(c dispute.Commitment, value wire.Hash) dispute.Commitment {
	c.Payload, c.PayloadBytes = wire.Sum("check/payload", value[:]), 100
	c.State = wire.Sum("check/state", value[:])
	c.Work = dispute.WorkHash(c.Run, c.Round, c.Member, gradient(value))
	return c
}

// trace is one party's computation of a case.
type trace struct {
	name   string
	leaves []wire.Hash
	value  wire.Hash          // of the first operation
	result dispute.Commitment // what the trace ends with, filled in
}

func (t trace) root() wire.Hash { return bisect.Root(t.leaves) }

// traces are the ways in which the case of a check may be computed, the true one first.
func traces(c dispute.Case) []trace {
	value := computed(c)
	bent := wire.Sum("check/bent", value[:])
	right, wrong := conclude(c.Commitment, value), conclude(c.Commitment, bent)
	o, x := dispute.Outcome(right), dispute.Outcome(wrong)
	return []trace{
		{"true", []wire.Hash{value, o}, value, right},
		{"bent", []wire.Hash{bent, x}, bent, wrong},                    // a lie from the start
		{"outcome", []wire.Hash{value, x}, value, wrong},               // a lie at the end
		{"value", []wire.Hash{bent, o}, bent, right},                   // a lie that ends in the truth
		{"padding", []wire.Hash{value, o, wire.Hash{1}}, value, right}, // a leaf where none may be
	}
}

func (t trace) evidence() []byte {
	b := wire.AppendHash(nil, t.value)
	for _, h := range bisect.Prove(t.leaves, 0) {
		b = wire.AppendHash(b, h)
	}
	return b
}
