package live

import (
	"context"
	"errors"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/validator"
	"github.com/entrain-network/entrain/wire"
)

// lookFor limits one attempt to fetch an object, and a window does; the machine tries again.
const lookFor = 20 * time.Second

// within returns a time, or a window's part if that is less.
func (v *Validator) within(most time.Duration, part int64) time.Duration {
	return min(most, time.Duration(int64(v.state.Config().RoundTrainMs)/part)*time.Millisecond)
}

var errNoBucket = errors.New("the member has announced no bucket")

// fetch fetches a copy of a result, or else a commitment by the ID on the chain, and then the
// reveal that it names.
func (v *Validator) fetch(a validator.Fetch) {
	if len(a.From) > 0 {
		v.findCopy(a)
		return
	}
	missing := func(what string, err error) {
		if !errors.Is(err, bucket.ErrMissing) {
			v.note("%s of member %d in window %d: %v", what, a.Member, a.Window, bucket.Advise(err))
		}
		v.step(validator.Fetched{Window: a.Window, Member: a.Member})
	}
	at, ok := v.where[a.Key]
	if !ok {
		err := errNoBucket
		if v.where == nil { // nobody's are known yet
			err = bucket.ErrMissing
		}
		v.cfg.Loop.Post(func() { missing("bucket", err) })
		return
	}
	if c, ok := v.signed[place{a.Window, a.Member}]; ok {
		v.fetchReveal(a, at, c, missing)
		return
	}
	name := bucket.Name{Run: v.cfg.ID, Window: a.Window, Kind: bucket.KindCommitment, Member: a.Key, Content: a.Commitment}
	v.cfg.Exchange.Get(bucket.Want{Location: at, Name: name, Max: dispute.SignedBytes}, v.within(lookFor, 1), func(body []byte, err error) {
		if v.ended {
			return
		}
		if err != nil {
			missing("commitment", err)
			return
		}
		// The reader has compared it with its ID, window, run and author.
		signed, err := dispute.ParseSigned(body)
		if err != nil || signed.Commitment.Member != a.Member {
			missing("commitment", errors.New("it is of another member"))
			return
		}
		v.signed[place{a.Window, a.Member}] = signed.Commitment
		v.fetchReveal(a, at, signed.Commitment, missing)
	})
}

func (v *Validator) fetchReveal(a validator.Fetch, at bucket.Location, c dispute.Commitment, missing func(string, error)) {
	want := bucket.Want{
		Location: at, Max: v.slicer.RevealLen(),
		Name:  bucket.Name{Run: v.cfg.ID, Window: a.Window, Kind: bucket.KindReveal, Member: a.Key, Content: c.Payload},
		Check: func(body []byte) error { return v.opens(body, c.Payload, a.Seed) },
	}
	v.cfg.Exchange.Get(want, v.within(lookFor, 1), func(body []byte, err error) {
		if v.ended {
			return
		}
		if err != nil {
			missing("reveal", err)
			return
		}
		v.keep(a, Result{Commitment: c, Reveal: body})
	})
}

// keep ends a fetch with a checked result.
func (v *Validator) keep(a validator.Fetch, r Result) {
	var norm float64
	v.cfg.Loop.Work(v.cfg.Cost("hash"), func() { norm = score.Norm(v.slicer.Values(nil, r.Reveal)) }, func() {
		v.held[place{a.Window, a.Member}] = r
		v.step(validator.Fetched{Window: a.Window, Member: a.Member, OK: true, Norm: norm})
	})
}

var errOtherSlice = errors.New("it opens another commitment, or is of another slice")

// opens returns an error unless body is what the seed draws of the committed update. It is called
// off the loop.
func (v *Validator) opens(body []byte, payload, seed wire.Hash) error {
	root, of, err := v.slicer.Open(body)
	if err == nil && (root != payload || of != seed) {
		err = errOtherSlice
	}
	return err
}

// evaluate recomputes a gradient and compares it with the reveal.
func (v *Validator) evaluate(a validator.Evaluate) {
	r, ok := v.held[place{a.Window, a.Member}]
	failed := validator.Evaluated{Window: a.Window, Member: a.Member}
	if !ok {
		v.cfg.Loop.Post(func() { v.step(failed) })
		return
	}
	var e score.Evidence
	var loss float64
	var err error
	started := v.cfg.Loop.Now()
	params := v.params
	v.cfg.Loop.Work(v.cfg.Cost("evaluate"), func() { e, loss, err = v.judge.Evidence(v.ctx, a, params, r) }, func() {
		if err != nil {
			if v.ctx.Err() == nil {
				v.note("evaluating member %d in window %d: %v", a.Member, a.Window, err)
			}
			v.step(failed)
			return
		}
		v.observe(Event{Kind: "evaluated", Round: a.Window, Loss: loss, Seconds: v.cfg.Loop.Now().Sub(started).Seconds()})
		v.step(validator.Evaluated{Window: a.Window, Member: a.Member, OK: true, Evidence: e})
	})
}

// Result is what a member published of its work in a window: its commitment, and its update on the
// slice.
type Result struct {
	Commitment dispute.Commitment
	Reveal     []byte
}

// Judge evaluates results, without memory of earlier ones.
type Judge struct {
	Run     wire.Hash // the run's identity
	Engine  engine.Engine
	Slicer  engine.Slicer
	Tensors int  // number of the model's tensors
	Inexact bool // as in [Config]
}

// Evidence recomputes a share's gradient on params, without changing them, and compares it with the
// reveal, which must have been opened for the commitment. It also returns the share's loss.
func (j Judge) Evidence(ctx context.Context, a validator.Evaluate, params engine.Vector, r Result) (score.Evidence, float64, error) {
	g, err := j.Engine.Gradient(ctx, params, a.Spans)
	if err != nil {
		return score.Evidence{}, 0, err
	}
	_, seed, err := j.Slicer.Open(r.Reveal)
	if err != nil {
		return score.Evidence{}, 0, err
	}
	parts := make([]int, j.Tensors)
	var at []float32
	for _, s := range j.Slicer.Ranges(seed) {
		parts[s.Tensor] += s.Len()
		at = append(at, g.Values.Host(s.From, s.To)...)
	}
	e := score.Evidence{
		Median:      a.Median,
		WorkDiffers: !j.Inexact && dispute.WorkHash(j.Run, a.Window, a.Member, g.Root) != r.Commitment.Work,
	}
	if e.Likeness, err = score.Compare(parts, j.Slicer.Values(nil, r.Reveal), at); err != nil {
		return e, 0, err
	}
	if len(a.Assigned) > 0 && len(a.Random) > 0 && !e.WorkDiffers {
		if e.Losses, err = j.losses(ctx, a, params, r); err != nil {
			return e, 0, err
		}
	}
	return e, float64(g.Loss), nil
}

// losses measures the effect of a single reveal on losses.
func (j Judge) losses(ctx context.Context, a validator.Evaluate, params engine.Vector, r Result) (*score.Losses, error) {
	after := j.Engine.NewVector(params.Len())
	j.Engine.Copy(after, params)
	if err := j.Engine.Apply(after, [][]byte{r.Reveal}, uint32(a.Step)); err != nil {
		return nil, err
	}
	var l score.Losses
	for _, m := range []struct {
		to     *float64
		params engine.Vector
		spans  []batch.Span
	}{
		{&l.Assigned.Before, params, a.Assigned}, {&l.Assigned.After, after, a.Assigned},
		{&l.Random.Before, params, a.Random}, {&l.Random.After, after, a.Random},
	} {
		var err error
		if *m.to, err = j.Engine.Loss(ctx, m.params, m.spans); err != nil {
			return nil, err
		}
	}
	return &l, nil
}

// apply computes the next round's parameters.
func (v *Validator) apply(a validator.Apply) {
	var reveals [][]byte
	for _, m := range a.Members {
		if r, ok := v.held[place{a.Window, m}]; ok {
			reveals = append(reveals, r.Reveal)
		}
	}
	var root wire.Hash
	err := error(nil)
	params := v.params
	v.cfg.Loop.Work(v.cfg.Cost("apply"), func() {
		if len(reveals) != len(a.Members) {
			err = errors.New("reveals are missing")
			return
		}
		if err = v.cfg.Engine.Apply(params, reveals, uint32(a.Step)); err == nil {
			root = merkle.Root(v.cfg.Engine.Leaves(params))
		}
	}, func() {
		if err != nil {
			v.note("applying window %d: %v", a.Window, err)
		} else {
			v.observe(Event{Kind: "applied", Round: a.To, Params: root})
		}
		v.step(validator.Applied{To: a.To, Params: root, OK: err == nil})
	})
}
