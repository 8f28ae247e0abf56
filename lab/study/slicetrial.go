package study

import (
	"encoding/binary"
	"math"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/engine/cpu"
)

// learner returns a function that turns the payloads of a window into a step of the parameters, to
// be taken now or a window later.
func (r *sliceRun) learner() func(w int, payloads [][]byte) func() error {
	if r.row.Rule == RuleDistro || r.row.Rule == RuleSlice {
		return func(w int, payloads [][]byte) func() error {
			return func() error { return r.engine.Apply(cpu.Floats(r.params), payloads, uint32(w)) }
		}
	}
	if r.row.Rule == RuleMean {
		return r.mean
	}
	t := &signTrial{r: r, factor: float32(math.Sqrt(float64(r.row.Compression)))}
	for range r.o.Members {
		t.sums = append(t.sums, make([]float32, len(r.params)))
	}
	return t.learn
}

// mean implements the rule mean.
func (r *sliceRun) mean(w int, reveals [][]byte) func() error {
	step := r.rates.LR(uint32(w)) / float32(len(reveals))
	return func() error {
		for _, reveal := range reveals {
			values := r.slice.Values(nil, reveal)
			for _, positions := range r.slice.Ranges(windowSeed(w)) {
				for i := range r.params[positions.From:positions.To] {
					r.params[positions.From+i] -= float32(step * values[i])
				}
				values = values[positions.Len():]
			}
		}
		return nil
	}
}

// signTrial implements the rules sign and votes: members sum plain gradients, and a slice steps by
// signs.
type signTrial struct {
	r      *sliceRun
	sums   [][]float32 // by member
	factor float32     // scales a step: a coordinate moves in one window of Compression
}

// signStep steps one position.
type signStep struct {
	at int
	by float32
}

func (t *signTrial) learn(w int, gradients [][]byte) func() error {
	for m, payload := range gradients {
		sum, g := t.sums[m], payload[codec.HeaderLen:]
		for i := range sum {
			sum[i] = float32(t.r.row.Decay*sum[i]) + math.Float32frombits(binary.LittleEndian.Uint32(g[4*i:]))
		}
	}
	rate := t.r.rates.LR(uint32(w)) * t.factor
	var steps []signStep
	for _, positions := range t.r.slice.Ranges(windowSeed(w)) {
		for at := positions.From; at < positions.To; at++ {
			steps = append(steps, signStep{at, rate * t.direction(at)})
		}
	}
	return func() error {
		for _, s := range steps {
			t.r.params[s.at] -= s.by
		}
		return nil
	}
}

// direction returns the sign by which a position moves, and subtracts what is sent from the sums.
func (t *signTrial) direction(at int) float32 {
	var total, votes float32
	for _, sum := range t.sums {
		total += sum[at]
		votes += sign(sum[at])
		sum[at] = 0
	}
	if t.r.row.Rule == RuleVotes {
		return votes / float32(len(t.sums))
	}
	return sign(total)
}

func sign(x float32) float32 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
