package distro_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/dense"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/tensor"
)

// A classifier is multinomial logistic regression: a problem with one minimum, on which methods can
// be compared by their loss alone.
type classifier struct {
	features, classes int
	inputs            [][]float64
	labels            []int
}

// newClassifier draws examples whose labels a hidden matrix of weights chooses, one in ten of them
// at random.
func newClassifier(examples int) *classifier {
	r := rand.New(rand.NewPCG(7, 7))
	p := &classifier{features: 30, classes: 20}
	hidden := make([]float64, p.features*p.classes)
	for i := range hidden {
		hidden[i] = r.NormFloat64()
	}
	for range examples {
		x := make([]float64, p.features)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		best, most := 0, math.Inf(-1)
		for c := range p.classes {
			var score float64
			for i, v := range x {
				score += v * hidden[c*p.features+i]
			}
			if score > most {
				best, most = c, score
			}
		}
		if r.IntN(10) == 0 {
			best = r.IntN(p.classes)
		}
		p.inputs, p.labels = append(p.inputs, x), append(p.labels, best)
	}
	return p
}

// loss returns the mean cross-entropy over examples [from, to) in nats, and adds its gradient to
// grad unless that is nil.
func (p *classifier) loss(params, grad []float32, from, to int) float64 {
	var loss float64
	scores := make([]float64, p.classes)
	for e := from; e < to; e++ {
		var sum float64
		for c := range scores {
			scores[c] = 0
			for i, v := range p.inputs[e] {
				scores[c] += v * float64(params[c*p.features+i])
			}
			scores[c] = math.Exp(scores[c])
			sum += scores[c]
		}
		loss -= math.Log(scores[p.labels[e]]/sum) / float64(to-from)
		if grad == nil {
			continue
		}
		for c := range scores {
			d := scores[c] / sum
			if c == p.labels[e] {
				d--
			}
			for i, v := range p.inputs[e] {
				grad[c*p.features+i] += float32(d * v / float64(to-from))
			}
		}
	}
	return loss
}

// train lets four members train with c, each on batches of its own quarter of the examples, and
// returns the loss over all of them.
func train(t *testing.T, p *classifier, c codec.Codec, steps int, lr float32) float64 {
	t.Helper()
	const members, batch = 4, 50
	params := make([]float32, p.features*p.classes)
	states := make([][]float32, members)
	for m := range states {
		states[m] = make([]float32, c.StateLen())
	}
	quarter := len(p.inputs) / members
	for step := range steps {
		rate := lr * float32(steps-step) / float32(steps)
		var payloads [][]byte
		for m := range members {
			grad := make([]float32, len(params))
			from := m*quarter + step*batch%quarter
			p.loss(params, grad, from, from+batch)
			payload, err := c.Encode(nil, states[m], grad, rate)
			if err != nil {
				t.Fatal(err)
			}
			payloads = append(payloads, payload)
		}
		if err := c.Apply(params, payloads, rate); err != nil {
			t.Fatal(err)
		}
	}
	return p.loss(params, nil, 0, len(p.inputs))
}

func TestTrainsAboutAsWellAsTheDenseGradient(t *testing.T) {
	p := newClassifier(2000)
	layout := tensor.NewLayout([]tensor.Spec{{Name: "w", Shape: []int{p.classes, p.features}}})
	full, err := dense.New(layout, dense.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sparse, err := distro.New(layout, distro.Config{Block: 10, TopK: 6, Decay: .95}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const steps = 300
	want := train(t, p, full, steps, 1)
	got := train(t, p, sparse, steps, .03)
	start := math.Log(float64(p.classes))
	t.Logf("loss from %.3f to %.3f with %d bytes a payload, to %.3f with %d", start, got, sparse.PayloadMax(), want, full.PayloadMax())
	if want > start/2 {
		t.Fatalf("the dense gradient comes only from %.3f to %.3f: the problem shows nothing", start, want)
	}
	if got > want*1.1 {
		t.Errorf("loss %.3f, more than a tenth above %.3f of the dense gradient", got, want)
	}
}
