package market

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/wire"
)

// RewardsOptions configure a measurement of rewards. Zero values mean the values in the comments.
type RewardsOptions struct {
	Honest     int    // honest miners beside the measured one: 5
	Validators int    // 2
	Steps      uint32 // windows: 40
	Seeds      int    // runs to average: 2
	// Progress, if not nil, receives short descriptions of what is being measured.
	Progress func(what string)
}

// Behaviour is the behaviour of one miner while all others are honest.
type Behaviour struct {
	Name    string
	Kind    string // a kind of adversary.Miners, or ""
	Percent int    // part of its share that it trains on; 0: all
}

// behaviours returns the measured behaviours.
func behaviours() []Behaviour {
	return []Behaviour{
		{Name: "honest"},
		{Name: "three quarters of the data", Percent: 75},
		{Name: "half the data", Kind: "half-data"},
		{Name: "a quarter of the data", Percent: 25},
		{Name: "an eighth of the data", Percent: 13},
		{Name: "wrong pages", Kind: "wrong-data"},
		{Name: "copy", Kind: "copy"},
		{Name: "stale", Kind: "stale"},
		{Name: "noise", Kind: "noise"},
		{Name: "sign-flipped", Kind: "sign-flip"},
		{Name: "scaled", Kind: "scale"},
		{Name: "3.5 times as long", Kind: "long"},
		{Name: "the gradient", Kind: "gradient"},
		{Name: "half the gradient", Kind: "blend"},
		{Name: "the update before", Kind: "earlier"},
	}
}

// Reward is the result of one behaviour.
type Reward struct {
	Behaviour string
	// Means over all evaluations of it by the first validator, without the first quarter of the
	// windows.
	Cosine       float64
	TensorCosine float64
	Norm         float64 // in medians of the window
	Advantage    float64 // by losses
	Score        float64 // where works are not compared
	// Pay is its pay relative to the mean of the honest miners.
	Pay float64
	// PayInexact is the same with inexact arithmetic, where works are not compared.
	PayInexact float64
	// Loss is the final held-out loss of the run in which works are compared. A miner that is not
	// paid still moves the model.
	Loss float64
	// Verdicts counts the verdicts of evaluations in which works are compared.
	Verdicts map[score.Verdict]int
}

// Rewards is the result of a measurement.
type Rewards struct {
	Honest     int
	Validators int
	Windows    uint32
	Seeds      int
	Params     int
	Reveal     uint64
	Written    uint64 // per miner and window
	Dense      uint64
	Rows       []Reward
}

// MeasureRewards measures the pay of one miner with each behaviour in turn, each in its own run.
// Equal options give equal numbers on every machine.
func MeasureRewards(ctx context.Context, o RewardsOptions) (Rewards, error) {
	o.fill()
	r := Rewards{Honest: o.Honest, Validators: o.Validators, Windows: o.Steps, Seeds: o.Seeds, Params: Model.Layout().Len()}
	for _, b := range behaviours() {
		row := Reward{Behaviour: b.Name, Verdicts: map[score.Verdict]int{}}
		for seed := range o.Seeds {
			o.Progress(fmt.Sprintf("%s, run %d of %d", b.Name, seed+1, o.Seeds))
			exact, err := o.one(ctx, b, seed, false)
			if err != nil {
				return r, fmt.Errorf("%s: %w", b.Name, err)
			}
			inexact, err := o.one(ctx, b, seed, true)
			if err != nil {
				return r, fmt.Errorf("%s: %w", b.Name, err)
			}
			r.Reveal, r.Written, r.Dense = exact.Reveal, exact.Bytes, exact.Dense
			row.add(exact, inexact, float64(o.Seeds))
		}
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

func (o *RewardsOptions) fill() {
	o.Honest, o.Validators, o.Seeds = cmp.Or(o.Honest, 5), cmp.Or(o.Validators, 2), cmp.Or(o.Seeds, 2)
	o.Steps = cmp.Or(o.Steps, 40)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// one runs one market.
func (o *RewardsOptions) one(ctx context.Context, b Behaviour, seed int, inexact bool) (Result, error) {
	cfg := Config{
		Miners: append(make([]Miner, o.Honest), Miner{Kind: b.Kind, Percent: b.Percent}), Validators: make([]Judge, o.Validators),
		Steps: o.Steps, Inexact: inexact, Seed: wire.Sum("entrain/rewards", binary.LittleEndian.AppendUint32(nil, uint32(seed))),
	}
	m, err := New(ctx, cfg)
	if err != nil {
		return Result{}, err
	}
	defer m.Close()
	return m.Run()
}

// add adds the last miner's part of two runs to the means.
func (r *Reward) add(exact, inexact Result, seeds float64) {
	seen := inexact.Earners[len(inexact.Earners)-1].Evidence
	r.Cosine += seen.Whole / seeds
	r.TensorCosine += seen.Tensors / seeds
	r.Norm += seen.Norm / seeds
	r.Advantage += seen.Advantage / seeds
	r.Score += seen.One / seeds
	r.Pay += exact.relative() / seeds
	r.PayInexact += inexact.relative() / seeds
	r.Loss += exact.Loss / seeds
	for v, n := range exact.Earners[len(exact.Earners)-1].Evidence.Verdicts {
		r.Verdicts[v] += n
	}
}

// relative returns the last miner's pay relative to the mean of the others.
func (r Result) relative() float64 {
	last := len(r.Earners) - 1
	var others float64
	for _, e := range r.Earners[:last] {
		others += float64(e.Reward) / float64(last)
	}
	if others == 0 {
		return 0
	}
	return float64(r.Earners[last].Reward) / others
}
