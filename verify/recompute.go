package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/train"
	"github.com/entrain-network/entrain/wire"
)

// Engine does steps: train.Engine is one.
type Engine interface {
	Step(ctx context.Context, params, state []float32, spans []batch.Span, step uint32) (train.Result, error)
	Leaves(values []float32) []wire.Hash
}

// Verdict is what came out of a step done again.
type Verdict struct {
	// Same says that the commitment is to what came out.
	Same bool
	// Difference says in what it is not, for people.
	Difference string
	// Failed is why nothing comes out of the step, or nil: a commitment to something is wrong then.
	Failed error
	Result train.Result
	State  []float32 // the optimizer state after the step
}

// Inputs are what a step is done with.
type Inputs struct {
	Spans         []batch.Span
	Params, State []float32 // at the round's start, and the optimizer's before the step; neither is changed
}

// Recompute does the step of a case again and compares what comes out with the commitment. An error means that nothing was found out: the inputs
// are not those the commitment names, or the engine could not read them.
func Recompute(ctx context.Context, e Engine, c coordinator.Case, in Inputs) (Verdict, error) {
	if err := in.check(e.Leaves, c); err != nil {
		return Verdict{}, err
	}
	v := Verdict{State: slices.Clone(in.State)}
	var err error
	if v.Result, err = e.Step(ctx, in.Params, v.State, in.Spans, c.Step); err != nil {
		if !refused(err) {
			return Verdict{}, err
		}
		v.Failed, v.Difference = err, fmt.Sprintf("nothing comes out of the step: %v", err)
		return v, nil
	}
	v.Difference = difference(c.Commitment, v.Result, merkle.Root(e.Leaves(v.State)))
	v.Same = v.Difference == ""
	return v, nil
}

// refused tells whether err says that the step has no result, as opposed to that it could not be done here.
func refused(err error) bool {
	return errors.Is(err, llama.ErrNotFinite) || errors.Is(err, codec.ErrNotFinite) || errors.Is(err, codec.ErrTooLarge)
}

// check tells whether the inputs are those of the commitment.
func (in Inputs) check(leaves func(values []float32) []wire.Hash, c coordinator.Case) error {
	if batch.Hash(in.Spans) != c.Commitment.Share || batch.Total(in.Spans) != c.Sequences {
		return fmt.Errorf("verify: the spans are not share %s of %d sequences", c.Commitment.Share, c.Sequences)
	}
	for _, x := range []struct {
		what   string
		values []float32
		want   wire.Hash
	}{{"parameters", in.Params, c.Commitment.Params}, {"optimizer state", in.State, c.Commitment.Prev}} {
		if got := merkle.Root(leaves(x.values)); got != x.want {
			return fmt.Errorf("verify: the %s at hand are %s, the commitment is from %s", x.what, got, x.want)
		}
	}
	return nil
}

// difference says in what a commitment is not to a result; empty if it is.
func difference(c coordinator.Commitment, r train.Result, state wire.Hash) string {
	switch payload, work := merkle.BlobRoot(r.Payload), coordinator.WorkHash(c.Run, c.Round, c.Member, r.Gradient); {
	case c.Work != work:
		return fmt.Sprintf("the gradient is not the one committed to: it is %s, whose proof of work is %s instead of %s", r.Gradient, work, c.Work)
	case c.Payload != payload || c.PayloadBytes != uint32(len(r.Payload)):
		return fmt.Sprintf("the payload is %s of %d bytes instead of %s of %d", payload, len(r.Payload), c.Payload, c.PayloadBytes)
	case c.State != state:
		return fmt.Sprintf("the new optimizer state is %s instead of %s", state, c.State)
	}
	return ""
}
