package verify

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// Verdict is the outcome of recomputing a step.
type Verdict struct {
	// Same reports whether the commitment matches the recomputed result.
	Same bool
	// Difference describes, for people, how the commitment differs.
	Difference string
	// Failed is the reason why the step has no result, or nil. If it is set, any commitment is wrong.
	Failed error
	Result engine.Result
	State  engine.Vector // the optimizer state after the step
}

// Inputs are the inputs of a step.
type Inputs struct {
	Spans []batch.Span
	// Params are the parameters at the round's start, State is the optimizer state before the step,
	// nil where only the gradient is disputed. Neither is changed.
	Params, State engine.Vector
}

// Recompute repeats the step of a case and compares the result with the commitment. An error means
// that there is no verdict: the inputs are not those the commitment names, or the engine could not
// read them. The commitment names its payload by merkle.BlobRoot.
func Recompute(ctx context.Context, e engine.Engine, c dispute.Case, in Inputs) (Verdict, error) {
	if err := in.check(e, c); err != nil {
		return Verdict{}, err
	}
	v := Verdict{State: e.NewVector(in.State.Len())}
	e.Copy(v.State, in.State)
	var err error
	if v.Result, err = e.Step(ctx, in.Params, v.State, in.Spans, uint32(c.Step)); err != nil {
		if !NoResult(err) {
			return Verdict{}, err
		}
		v.Failed, v.Difference = err, fmt.Sprintf("a result where there is none: %v", err)
		return v, nil
	}
	v.Difference = Difference(c.Commitment, Claim(c.Commitment, v.Result, merkle.Root(e.Leaves(v.State)), false))
	v.Same = v.Difference == ""
	return v, nil
}

// NoResult reports whether err means that a step has no result because its numbers diverge. Any
// member that committed to a result must have seen the same error. Other errors mean only that this
// machine could not compute the step.
func NoResult(err error) bool {
	return errors.Is(err, llama.ErrNotFinite) || errors.Is(err, codec.ErrNotFinite) || errors.Is(err, codec.ErrTooLarge)
}

// check returns an error unless the inputs are those of the commitment.
func (in Inputs) check(e engine.Engine, c dispute.Case) error {
	if batch.Hash(in.Spans) != c.Commitment.Share || batch.Total(in.Spans) != c.Sequences {
		return fmt.Errorf("verify: the spans do not form share %s of %d sequences", c.Commitment.Share, c.Sequences)
	}
	for _, x := range []struct {
		what   string
		values engine.Vector
		want   wire.Hash
	}{{"parameters", in.Params, c.Commitment.Params}, {"optimizer state", in.State, c.Commitment.Prev}} {
		if x.values == nil {
			continue
		}
		if got := merkle.Root(e.Leaves(x.values)); got != x.want {
			return fmt.Errorf("verify: the %s have hash %s, but the commitment names %s", x.what, got, x.want)
		}
	}
	return nil
}

// Claim returns the commitment c as it would be had r, and the optimizer state with the given hash
// after the step, been the result of its share. pieces is how it names the payload
// (codec.PayloadRoot).
func Claim(c dispute.Commitment, r engine.Result, state wire.Hash, pieces bool) dispute.Commitment {
	c.Payload, c.PayloadBytes = codec.PayloadRoot(r.Payload, pieces), uint32(len(r.Payload))
	c.State, c.Work = state, dispute.WorkHash(c.Run, c.Round, c.Member, r.Gradient)
	return c
}

// Difference describes, for people, which parts of a commitment's result differ from the expected
// ones. It returns "" if none do.
func Difference(got, want dispute.Commitment) string {
	var parts []string
	for _, p := range [...]struct {
		name      string
		got, want wire.Hash
	}{{"update", got.Payload, want.Payload}, {"optimizer state", got.State, want.State}, {"gradient", got.Work, want.Work}} {
		if p.got != p.want {
			parts = append(parts, fmt.Sprintf("%s %.4x instead of %.4x", p.name, p.got[:], p.want[:]))
		}
	}
	if got.PayloadBytes != want.PayloadBytes {
		parts = append(parts, fmt.Sprintf("an update of %d bytes instead of %d", got.PayloadBytes, want.PayloadBytes))
	}
	return strings.Join(parts, ", ")
}
