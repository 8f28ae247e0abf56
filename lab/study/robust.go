package study

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/optim"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// RobustOptions configure a measurement of aggregation under attack. Zero values give the
// measurement in the documentation.
type RobustOptions struct {
	Members int   // including attackers
	Steps   int   // training steps
	Shares  []int // percentages of members that attack
	Rules   []Rule
	Attacks []Attack
	// Progress, if not nil, receives short descriptions of what is being measured.
	Progress func(what string)
}

// Rule is a way of counting votes, as settings of a specification; or of clipping updates of codec
// sparseloco.
type Rule struct {
	Name       string
	VotesMax   int
	Sparse     bool
	ClipChunks int
}

// SparseRules lists the compared rules of sparseloco.
func SparseRules() []Rule {
	return []Rule{{Name: "payloads", Sparse: true}, {Name: "clip_chunks 8", Sparse: true, ClipChunks: 8}}
}

// codec makes the codec.
func (r Rule) codec(pool *exact.Pool) (codec.Codec, error) {
	if r.Sparse {
		return sparseloco.New(robustModel.Layout(), sparseloco.Config{Chunk: 256, TopK: 32, Decay: 0.95, OuterRate: 1, ClipChunks: r.ClipChunks}, pool)
	}
	cfg := robustCodec
	cfg.VotesMax = r.VotesMax
	return distro.New(robustModel.Layout(), cfg, pool)
}

// Rules lists the compared rules.
func Rules() []Rule {
	return []Rule{{Name: "each counts"}, {Name: "votes_max 1", VotesMax: 1}, {Name: "votes_max 2", VotesMax: 2}, {Name: "votes_max 4", VotesMax: 4}}
}

// Attacked is the result of one run.
type Attacked struct {
	Rule      string
	Attack    Attack
	Percent   int // percentage of members that attack
	Attackers int
	Loss      float64 // after the last step, nats a token
	// Relative is the loss relative to that of the honest run in which each vote counts.
	Relative float64
	// One and All are the distances of the rounds' steps from those without one of the attackers,
	// and without all of them, relative to the greatest length of a step: the learning rate times
	// the root of the number of weights. They are means over the rounds. In a run without
	// attackers, One is that of an honest member. Opposite steps are 2 apart.
	One float64
	All float64
}

// Robust is the result of a measurement.
type Robust struct {
	Members int
	Steps   int
	Params  int
	Start   float64
	Floor   float64
	Rows    []Attacked
}

// MeasureRobust trains a small model under each rule, honestly and with each share of each kind of
// attackers. Equal options give equal numbers on every machine.
func MeasureRobust(ctx context.Context, o RobustOptions) (Robust, error) {
	o.fill()
	pool := exact.NewPool(1) // the model is too small for more
	defer pool.Close()
	r := Robust{Members: o.Members, Steps: o.Steps, Params: robustModel.Layout().Len(), Floor: languageFloor()}
	var honest float64
	add := func(rule Rule, attack Attack, percent int) error {
		row, err := o.train(ctx, pool, rule, attack, percent)
		if err != nil {
			return err
		}
		if r.Start = row.start; honest == 0 {
			honest = row.Loss
		}
		row.Relative = row.Loss / honest
		r.Rows = append(r.Rows, row.Attacked)
		return nil
	}
	for _, rule := range o.Rules {
		if err := add(rule, Honest, 0); err != nil {
			return Robust{}, err
		}
		for _, attack := range o.Attacks {
			for _, percent := range o.Shares {
				if err := add(rule, attack, percent); err != nil {
					return Robust{}, err
				}
			}
		}
	}
	return r, nil
}

func (o *RobustOptions) fill() {
	o.Members, o.Steps = cmp.Or(o.Members, 30), cmp.Or(o.Steps, 160)
	if o.Shares == nil {
		o.Shares = []int{10, 20, 33}
	}
	if o.Rules == nil {
		o.Rules = Rules()
	}
	if o.Attacks == nil {
		o.Attacks = attacks()
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
}

// The model is so small that a hundred runs take minutes, with the default settings scaled to it.
var (
	robustModel = llama.Config{Vocab: 64, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 64, Context: 24, Theta: 10000, Eps: 1e-5}
	robustCodec = distro.Config{Block: 32, TopK: 8, Decay: 0.95, WeightDecay: 0.1, ClipNorm: 1}
)

const (
	robustShare    = 2  // sequences of a member in a step
	robustHeldOut  = 64 // sequences on which the loss is measured
	robustRate     = 4e-3
	robustEvery    = 8 // steps between two measurements of influence
	robustSequence = 24
)

// attacked is a row with its initial state.
type attacked struct {
	Attacked
	start float64
}

// train trains one model.
func (o *RobustOptions) train(ctx context.Context, pool *exact.Pool, rule Rule, attack Attack, percent int) (attacked, error) {
	o.Progress(fmt.Sprintf("%s, %s %d %%", rule.Name, attack, percent))
	codec, err := rule.codec(pool)
	if err != nil {
		return attacked{}, err
	}
	model, err := llama.New(robustModel, pool, robustHeldOut, robustSequence)
	if err != nil {
		return attacked{}, err
	}
	schedule := optim.Schedule{Kind: optim.Cosine, Base: robustRate, WarmupSteps: uint32(o.Steps / 10), Steps: uint32(o.Steps), Final: robustRate / 10}
	if err := schedule.Check(); err != nil {
		return attacked{}, err
	}
	s := &robustRun{
		codec: codec, model: model, attack: attack, params: llama.Init(robustModel, wire.Sum("entrain/bench-robust")),
		attackers: (o.Members*percent + 50) / 100,
	}
	if err := s.init(o.Members, rule, pool); err != nil {
		return attacked{}, err
	}
	row := attacked{Attacked: Attacked{Rule: rule.Name, Attack: attack, Percent: percent, Attackers: s.attackers}}
	if row.start, err = s.heldOut(); err != nil {
		return row, err
	}
	for step := 1; step <= o.Steps; step++ {
		if err := ctx.Err(); err != nil {
			return row, err
		}
		if err := s.round(step, schedule.LR(uint32(step))); err != nil {
			return row, err
		}
	}
	row.One, row.All = s.one/s.measured, s.all/s.measured
	row.Loss, err = s.heldOut()
	return row, err
}

// robustRun is a training run in which the first members attack.
type robustRun struct {
	codec     codec.Codec
	model     *llama.Model
	attack    Attack
	attackers int
	params    []float32
	grads     [][]float32 // by member; with sparseloco, what a step of its optimizer changes
	inner     []*optim.AdamW
	states    [][]float32 // of the momentum, by member
	payloads  [][]byte
	tokens    []uint32
	with      []float32 // parameters after a round with all members
	without   []float32 // the same without some members

	one, all, measured float64
}

func (s *robustRun) init(members int, rule Rule, pool *exact.Pool) error {
	n := len(s.params)
	for range members {
		if !rule.Sparse {
			break
		}
		a, err := optim.NewAdamW(n, learningAdamW(), pool)
		if err != nil {
			return err
		}
		s.inner = append(s.inner, a)
	}
	for m := range members {
		state := make([]float32, n)
		if s.attack == Spread && m > 0 && m < s.attackers {
			state = s.states[0]
		}
		s.grads, s.states = append(s.grads, make([]float32, n)), append(s.states, state)
	}
	s.payloads = make([][]byte, members)
	s.tokens = make([]uint32, robustHeldOut*(robustSequence+1))
	s.with, s.without = make([]float32, n), make([]float32, n)
	return nil
}

// round is one step of all members.
func (s *robustRun) round(step int, lr float32) error {
	for m := range s.grads {
		clear(s.grads[m])
		tokens := s.tokens[:robustShare*(robustSequence+1)]
		language(tokens, uint64(step)<<32|uint64(m)<<8)
		if _, err := s.model.Grad(s.params, s.grads[m], tokens, robustShare, robustSequence, robustShare); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if s.inner != nil {
			copy(s.with, s.params)
			s.inner[m].Step(s.with, s.grads[m], lr)
			for i, x := range s.with {
				s.grads[m][i] = s.params[i] - x
			}
		}
	}
	s.attack.change(s.grads, s.attackers, step)
	for m, grad := range s.grads {
		payload, err := s.codec.Encode(s.payloads[m][:0], s.states[m], grad, lr)
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		s.payloads[m] = payload
	}
	if step%robustEvery == 0 {
		if err := s.influence(lr); err != nil {
			return err
		}
	}
	return s.codec.Apply(s.params, s.payloads, lr)
}

// influence measures the distances of the round's step from those without the first member, and
// without all attackers.
func (s *robustRun) influence(lr float32) error {
	copy(s.with, s.params)
	if err := s.codec.Apply(s.with, s.payloads, lr); err != nil {
		return err
	}
	longest := float64(lr) * math.Sqrt(float64(len(s.params)))
	for _, v := range []struct {
		leave int
		sum   *float64
	}{{1, &s.one}, {s.attackers, &s.all}} {
		copy(s.without, s.params)
		if err := s.codec.Apply(s.without, s.payloads[v.leave:], lr); err != nil {
			return err
		}
		var sum float64
		for i, x := range s.with {
			d := float64(x) - float64(s.without[i])
			sum += d * d
		}
		*v.sum += math.Sqrt(sum) / longest
	}
	s.measured++
	return nil
}

// heldOut returns the loss on held-out text.
func (s *robustRun) heldOut() (float64, error) {
	language(s.tokens, 1<<63)
	loss, err := s.model.Loss(s.params, s.tokens, robustHeldOut, robustSequence)
	return float64(loss), err
}

// robustFollowers is the number of words that can follow a word.
const robustFollowers = 4

// language writes sequences, numbered from first, of a language in which each word is followed by
// one of four; the previous word determines their probabilities.
func language(tokens []uint32, first uint64) {
	const rows = robustSequence + 1
	vocab := uint64(robustModel.Vocab)
	for ; len(tokens) > 0; tokens = tokens[rows:] {
		random := prng.New(wire.Sum("entrain/bench-language", wire.AppendU64(nil, first)), "sequence")
		before, word := random.Uint64n(vocab), random.Uint64n(vocab)
		for i := range rows {
			tokens[i] = uint32(word)
			which := uint64(0)
			for left := random.Uint64n(16); left >= languageWeight(which); which++ {
				left -= languageWeight(which)
			}
			if before%2 == 1 {
				which = robustFollowers - 1 - which
			}
			before, word = word, (word*5+which*17+7)%vocab
		}
		first++
	}
}

// languageWeight holds, for each follower of a word, in how many of 16 cases it follows.
func languageWeight(which uint64) uint64 { return [robustFollowers]uint64{8, 4, 3, 1}[which] }

// languageFloor is the loss of a model that knows the language, except for the context of the first
// word.
func languageFloor() float64 {
	var known, first float64
	for i := range uint64(robustFollowers) {
		p := float64(languageWeight(i)) / 16
		known -= p * math.Log(p)
		q := (p + float64(languageWeight(robustFollowers-1-i))/16) / 2
		first -= q * math.Log(q)
	}
	return (first + (robustSequence-1)*known) / robustSequence
}
