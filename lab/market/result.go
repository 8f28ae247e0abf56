package market

import (
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	scores "github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/score"
)

// Earner is the result of one miner.
type Earner struct {
	Kind     string
	Percent  int
	Accepted uint32  // number of accepted results
	Reward   uint64  // tokens
	Share    float64 // part of all miners' rewards
	// over all evaluations of the first validator, the first quarter of the windows left out
	Evidence Mean
}

// Mean holds means over evaluations.
type Mean struct {
	Count int
	// Norm in medians; One is the score of a single evaluation
	Whole, Tensors, Norm, Advantage, One float64
	Verdicts                             map[score.Verdict]int
}

// Result is the result of a market.
type Result struct {
	Earners    []Earner
	Validators []scores.Validator
	Paid       []uint64 // to validators, in the order of the configuration
	Periods    []scores.Scores
	Loss       float64 // held-out loss after the last window
	Windows    uint32
	Bytes      uint64 // mean bytes that a miner wrote in a window
	Dense      uint64 // bytes of a whole update in binary32
	Reveal     uint64 // bytes of one reveal
}

// windowLimit is a virtual time longer than any window.
const windowLimit = 20 * time.Second

// Run runs the market until the last period is settled and paid.
func (m *Market) Run() (Result, error) {
	limit := time.Duration(m.cfg.Steps+4*m.cfg.Period+20) * windowLimit
	settled := uint32(0)
	over := m.Until(limit, func() bool {
		s := m.State()
		if last, ok := s.LastScores(); ok && last.Settled && last.Period > settled {
			settled = last.Period
			m.periods = append(m.periods, last)
		}
		if s.Phase() != coordinator.Finished {
			return false
		}
		first, _ := s.PeriodWindows(settled + 1)
		return first > s.Round()
	})
	if m.ctx.Err() != nil {
		return Result{}, m.ctx.Err()
	}
	if !over {
		s := m.State()
		return Result{}, fmt.Errorf("market: the run has not come to its end: %s, round %d, window %d, period %d settled; notes of the first miner %q, of the first validator %q",
			s.Phase(), s.Round(), s.Window(), settled, tail(m.miners[0].notes), tail(m.notesOf()))
	}
	return m.result()
}

func (m *Market) notesOf() []string {
	if len(m.validators) == 0 {
		return nil
	}
	return m.validators[0].notes
}

func tail(list []string) []string { return list[max(0, len(list)-5):] }

func (m *Market) result() (Result, error) {
	s := m.State()
	slicer, _ := m.engine.Slicer()
	r := Result{Validators: s.Validators(), Periods: m.periods, Windows: uint32(s.Round()), Dense: m.dense(), Reveal: uint64(slicer.RevealLen())}
	var all uint64
	var bytes uint64
	for i, who := range m.cfg.Miners {
		at, ok := s.Find(MinerKey(i).Public())
		if !ok {
			return r, fmt.Errorf("market: miner %d is not a member", i)
		}
		member := s.Member(at)
		e := Earner{Kind: who.Kind, Percent: who.Percent, Accepted: member.Results, Reward: member.Earned, Evidence: m.mean(uint32(at))}
		all += e.Reward
		bytes += m.miners[i].bytes()
		r.Earners = append(r.Earners, e)
	}
	for i := range r.Earners {
		if all > 0 {
			r.Earners[i].Share = float64(r.Earners[i].Reward) / float64(all)
		}
	}
	for i := range m.cfg.Validators {
		v, _ := s.Validator(judgeKey(i).Public())
		r.Paid = append(r.Paid, v.Earned)
	}
	r.Bytes = bytes / uint64(len(m.cfg.Miners)) / uint64(max(1, s.Round()))
	params, err := m.final()
	if err == nil {
		r.Loss, err = m.HeldOut(params)
	}
	return r, err
}

// final returns the final parameters, as held by a miner that wrote a checkpoint.
func (m *Market) final() ([]float32, error) {
	if agreed, _ := m.State().Params(); m.saved != nil && m.savedHash == agreed {
		return m.saved, nil
	}
	return nil, errors.New("market: no miner has kept the agreed parameters")
}

// mean returns the means of the first validator's evaluations of a member.
func (m *Market) mean(member uint32) Mean {
	mean := Mean{Verdicts: map[score.Verdict]int{}}
	if len(m.validators) == 0 {
		return mean
	}
	n := 0.0
	for _, s := range m.validators[0].scored {
		if s.Member != coordinator.Member(member) || s.Window <= coordinator.Round(m.cfg.Steps/4) {
			continue
		}
		mean.Count++
		mean.Verdicts[s.Verdict]++
		mean.One += s.Score
		if s.Verdict == score.Absent {
			continue
		}
		n++
		e := s.Evidence
		mean.Whole += e.Whole
		mean.Tensors += e.Tensors
		if e.Median > 0 {
			mean.Norm += e.Norm / e.Median
		}
		if e.Losses != nil {
			mean.Advantage += e.Losses.Advantage()
		}
	}
	if n > 0 {
		mean.Whole, mean.Tensors, mean.Norm, mean.Advantage = mean.Whole/n, mean.Tensors/n, mean.Norm/n, mean.Advantage/n
	}
	if mean.Count > 0 {
		mean.One /= float64(mean.Count)
	}
	return mean
}
