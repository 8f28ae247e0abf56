package verify

import (
	"fmt"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/trace"
	"github.com/entrain-network/entrain/wire"
)

// referee is the coordinator's Referee for one run. It uses only plain Go, so every host of a
// ledger gets the same answer.
type referee struct{ rules *rules }

// NewReferee makes a run's referee from the text of its specification; it is the factory that
// host.NewHost takes. The error explains why the run's steps cannot be disputed.
func NewReferee(specText []byte) (dispute.Referee, error) {
	s, err := spec.Parse(specText, all.Kinds())
	if err != nil {
		return nil, err
	}
	r, err := newRules(s)
	if err != nil {
		return nil, fmt.Errorf("this run has no referee: %w", err)
	}
	return &referee{r}, nil
}

// Ops implements dispute.Referee.
func (r *referee) Ops(sequences uint32) uint32 {
	p, err := r.rules.program(dispute.Case{Sequences: sequences})
	if err != nil {
		return 1
	}
	return p.Len()
}

// op returns an operation of a case, or nil if it does not exist.
func (r *referee) op(c dispute.Case, op uint32) trace.Op {
	p, err := r.rules.program(c)
	if err != nil || op >= p.Len() {
		return nil
	}
	return p.Op(op)
}

// Tiles implements dispute.Referee.
func (r *referee) Tiles(c dispute.Case, op uint32) uint32 {
	if o := r.op(c, op); o != nil {
		return o.Tiles()
	}
	return 1
}

// Slices implements dispute.Referee.
func (r *referee) Slices(c dispute.Case, op, tile uint32) uint32 {
	if o := r.op(c, op); o != nil && tile < o.Tiles() {
		return o.Slices(tile)
	}
	return 1
}

// Judge implements dispute.Referee.
func (r *referee) Judge(c dispute.Case, op, tile, slice uint32, root wire.Hash, evidence []byte) (wire.Hash, error) {
	p, err := r.rules.program(c)
	if err != nil {
		return wire.Hash{}, err
	}
	return trace.Judge(p, opener{r.rules, c}, op, tile, slice, root, evidence)
}
