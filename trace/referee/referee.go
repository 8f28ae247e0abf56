// Package referee judges disputes by a table of a run's steps, on hosts that can neither parse a
// specification nor list a step's operations: programs of other chains. Its judgements are those of
// package verify.
package referee

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/data/order"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

// Rules are what of a specification a referee needs. Everyone can make them again from the
// specification (verify.Rules), and so see that a run's are right.
type Rules struct {
	Params   uint32    // number of parameters
	Manifest wire.Hash // hash of the data's manifest
	Order    wire.Hash // seed of the order of the sequences
	First    uint64    // first sequence of that order that the run trains on
	Base     wire.Hash // hash of the frozen model, in a run of adapters
	Frozen   uint32    // number of its parameters, else 0
	Table    []byte    // trace.Model.AppendTable
}

// Append appends the encoding of r: its fields in their order.
func (r Rules) Append(dst []byte) []byte {
	dst = wire.AppendHash(wire.AppendHash(wire.AppendU32(dst, r.Params), r.Manifest), r.Order)
	dst = wire.AppendU32(wire.AppendHash(wire.AppendU64(dst, r.First), r.Base), r.Frozen)
	return append(dst, r.Table...)
}

// Referee judges by rules. It implements dispute.Referee.
type Referee struct {
	rules Rules
	w     *exact.Worker
	p     *exact.Progress
}

// New returns a referee by encoded rules, which computes on w. With p, which may be nil, a
// judgement may take several calls of Judge.
func New(rules []byte, w *exact.Worker, p *exact.Progress) *Referee {
	r := wire.NewReader(rules)
	of := Rules{Params: r.U32(), Manifest: r.Hash(), Order: r.Hash(), First: r.U64(), Base: r.Hash(), Frozen: r.U32(), Table: r.Rest()}
	return &Referee{of, w, p}
}

// Error is why there is no judgement.
type Error string

// Error implements error.
func (e Error) Error() string { return string(e) }

// Errors of Judge.
const (
	ErrRules      Error = "the run has no rules for this step"
	ErrUnfinished Error = "the judgement takes more steps"
	ErrUnproven   Error = "the evidence proves nothing"
)

func (r *Referee) program(c dispute.Case) trace.Program {
	p, err := trace.Tabled(r.rules.Table, c.Sequences, func(t *trace.GradientTails) trace.Tail { return t.Tail(c.Commitment) })
	if err != wire.OK {
		return nil
	}
	return p
}

// Ops implements dispute.Referee.
//
//go:noinline
func (r *Referee) Ops(sequences uint32) uint32 {
	if p := r.program(dispute.Case{Sequences: sequences}); p != nil {
		return p.Len()
	}
	return 1
}

func (r *Referee) op(c dispute.Case, op uint32) trace.Op {
	if p := r.program(c); p != nil && op < p.Len() {
		return p.Op(op)
	}
	return nil
}

// Tiles implements dispute.Referee.
//
//go:noinline
func (r *Referee) Tiles(c dispute.Case, op uint32) uint32 {
	if o := r.op(c, op); o != nil {
		return o.Tiles()
	}
	return 1
}

// Slices implements dispute.Referee.
//
//go:noinline
func (r *Referee) Slices(c dispute.Case, op, tile uint32) uint32 {
	if o := r.op(c, op); o != nil && tile < o.Tiles() {
		return o.Slices(tile)
	}
	return 1
}

// Judge implements dispute.Referee. It fails with ErrUnfinished if the referee's Progress ends.
//
//go:noinline
func (r *Referee) Judge(c dispute.Case, op, tile, slice uint32, root wire.Hash, evidence []byte) (wire.Hash, error) {
	p := r.program(c)
	if p == nil {
		return wire.Hash{}, ErrRules
	}
	r.w.Resume(r.p)
	h, bad := trace.JudgeOn(r.w, p, opener{&r.rules, c}, op, tile, slice, root, evidence)
	switch {
	case bad != nil && bad.Err != nil:
		return wire.Hash{}, bad.Err
	case bad != nil:
		return wire.Hash{}, ErrUnproven
	case r.p != nil && r.p.Stopped:
		return wire.Hash{}, ErrUnfinished
	}
	return h, nil
}

// opener checks evidence with what the rules say about a case.
type opener struct {
	rules *Rules
	c     dispute.Case
}

// Open implements trace.Opener.
func (o opener) Open(r trace.Read, evidence []byte) ([]uint32, error) {
	switch r.Source {
	case trace.Params:
		return trace.OpenChunk(o.c.Commitment.Params, int(o.rules.Params), r.Index, evidence)
	case trace.Base:
		return trace.OpenChunk(o.rules.Base, int(o.rules.Frozen), r.Index, evidence)
	case trace.Tokens:
		return o.tokens(r.Index, evidence)
	}
	return nil, ErrUnproven
}

// spansMax bounds the spans of a share.
const spansMax = 1 << 12

// tokens checks the evidence for a sequence of the share.
func (o opener) tokens(index uint32, evidence []byte) ([]uint32, error) {
	r := wire.NewReader(evidence)
	text := wire.NewReader(r.Var(spansMax*batch.SpanBytes + 4))
	spans := batch.Parse(&text, spansMax)
	if r.Err() != wire.OK || text.Done() != wire.OK || batch.Hash(spans) != o.c.Commitment.Share || batch.Total(spans) != o.c.Sequences {
		return nil, ErrUnproven
	}
	number, ok := batch.Number(spans, index)
	if !ok {
		return nil, ErrUnproven
	}
	t := wire.NewReader(o.rules.Table)
	dst := make([]uint32, min(t.U32(), trace.SequenceMax)+1)
	return dst, order.Proven(dst, o.rules.Manifest, o.rules.Order, o.rules.First+number, r.Rest())
}
