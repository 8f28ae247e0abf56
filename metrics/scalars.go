package metrics

import (
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/wire"
)

// Scalars holds the measurements of one step, under names that people who train models know.
type Scalars struct {
	Time   time.Time
	Step   coordinator.Step
	Values []Scalar
}

// Scalar is one measurement.
//
//	train/loss           median of the losses that members state, nats per token
//	train/loss_own       loss on our own share
//	train/lr             learning rate
//	train/grad_norm      Euclidean norm of our own gradient, before clipping
//	train/results        results accepted and applied
//	eval/heldout_loss    held-out loss, nats per token
//	eval/TASK/acc, eval/TASK/acc_norm  accuracy of the model on a multiple-choice task
//	perf/tokens_per_sec  own rate while training
//	perf/flops_share     own floating-point operations per second while training, as a share of
//	                     the machine's peak
//	perf/network_tokens_per_sec  rate of all accepted work since the step before
//	perf/step_seconds    time since the step before
//	net/payload_bytes    size of our own result
//	net/fetched_bytes    bytes of others' results that arrived since the step before
//	net/peers            connected members
//	net/peers_known      members whose addresses are known
//	run/tokens           tokens of all accepted work
//	run/round, run/epoch, run/members, run/points  where the run stands; the points are our own
//	trust/checks, trust/passed, trust/disputes, trust/convictions  so far, in a run with checks
//	trust/open_checks    checks without a verdict
//	trust/stake          own stake in tokens
//	score/own            moving average of our own scores, -1 to 1
//	score/earned         tokens earned by scores so far
//	score/period, score/validators, score/emitted  running period, validators, tokens paid to all
//	net/window           running window, in a run that exchanges by buckets
//	net/commitments      commitments on the chain to the window before it
type Scalar struct {
	Name  string
	Value float64
}

// Meter turns records into scalars. Those of a step are complete when its results are applied,
// those of an evaluation when it ends.
type Meter struct {
	steps   [meterSteps]stepLosses // by step, modulo meterSteps
	fetched uint64
	peers   uint32
	known   uint64 // members with known addresses
	points  uint64

	head     runlog.Head
	trust    *runlog.Trust   // of the newest standing, whole; nil if the run has nothing of the kind
	windows  *runlog.Windows // likewise
	own      *runlog.Member  // this participant; nil if unknown
	rounds   []runlog.Round  // of the newest standing
	applied  time.Time
	accepted uint64 // points then
}

// meterSteps is the number of steps that can be open at a time: with overlap, results are applied
// after the next step is trained.
const meterSteps = 4

// stepLosses holds what was heard of a step before its results were applied.
type stepLosses struct {
	step  coordinator.Step
	heard []float32
	own   []Scalar // measured on our own share
}

// Add takes a record. It reports whether that completes some scalars.
func (m *Meter) Add(r runlog.Record) (s Scalars, ok bool) {
	if r.Standing != nil {
		m.head = r.Standing.Head
		m.rounds = r.Standing.Rounds
		m.trust, m.windows, m.own = r.Standing.Trust, r.Standing.Windows, nil
		own, err := wire.ParseHash(m.head.Own)
		for i := range r.Standing.Members {
			if x := &r.Standing.Members[i]; err == nil && x.Key == key.Public(own) {
				m.own = x
			}
		}
	}
	if r.Who != "" {
		return Scalars{}, false
	}
	switch ev := r.Event.(type) {
	case event.State:
		m.points = ev.Points
	case event.Peers:
		m.peers, m.known = ev.Connected, ev.Known
	case event.Committed:
		m.hear(m.stepOf(ev.Round), ev.Loss)
	case event.Fetched:
		m.fetched += ev.Bytes
	case event.Trained:
		own := []Scalar{{"train/loss_own", float64(ev.Loss)}, {"train/lr", float64(ev.LR)}, {"train/grad_norm", ev.GradNorm}}
		if ev.Seconds > 0 {
			own = append(own, Scalar{"perf/tokens_per_sec", ev.TokensPerSecond()})
		}
		if ev.PeakShare > 0 {
			own = append(own, Scalar{"perf/flops_share", ev.PeakShare})
		}
		m.hear(ev.Step, ev.Loss).own = append(own, Scalar{"net/payload_bytes", float64(ev.Bytes)})
	case event.Applied:
		return m.apply(r.Time, ev.Step, ev.Results), true
	case event.Evaluated:
		return Scalars{Time: r.Time, Step: ev.Step, Values: []Scalar{{"eval/heldout_loss", float64(ev.HeldOut)}, {"run/tokens", m.tokens()}}}, true
	case event.Scored:
		values := []Scalar{{"eval/" + ev.Task + "/acc", ev.Acc}, {"eval/" + ev.Task + "/acc_norm", ev.AccNorm}, {"run/tokens", m.tokens()}}
		return Scalars{Time: r.Time, Step: ev.Step, Values: values}, ev.Task != ""
	}
	return Scalars{}, false
}

func (m *Meter) tokens() float64 { return float64(m.trained()) * float64(m.head.SeqTokens) }

// trained returns the points given for training. Others are given for verifying.
func (m *Meter) trained() uint64 {
	if m.trust == nil {
		return m.head.Points
	}
	return m.head.Points - min(m.head.Points, m.trust.Verified)
}

// stepOf returns the step of a round. A commitment may arrive before the state that opens its
// round, which is then the next.
func (m *Meter) stepOf(round coordinator.Round) coordinator.Step {
	for _, r := range m.rounds {
		if r.Number == round {
			return r.Step
		}
	}
	if round == m.head.Round+1 {
		return m.head.Step + 1
	}
	return 0
}

// hear adds a member's loss in a step.
func (m *Meter) hear(step coordinator.Step, loss float32) *stepLosses {
	l := &m.steps[step%meterSteps]
	if l.step != step {
		*l = stepLosses{step: step}
	}
	l.heard = append(l.heard, loss)
	return l
}

// apply returns the scalars of a step whose results were just applied.
func (m *Meter) apply(now time.Time, step coordinator.Step, results int) Scalars {
	s := Scalars{Time: now, Step: step}
	add := func(name string, v float64) { s.Values = append(s.Values, Scalar{name, v}) }
	if l := m.steps[step%meterSteps]; l.step == step && len(l.heard) > 0 {
		_, mid, _ := runlog.Quartiles(l.heard)
		add("train/loss", mid)
		s.Values = append(s.Values, l.own...)
	}
	add("train/results", float64(results))
	if took := now.Sub(m.applied).Seconds(); !m.applied.IsZero() && took > 0 {
		add("perf/step_seconds", took)
		add("perf/network_tokens_per_sec", float64(m.trained()-min(m.trained(), m.accepted))*float64(m.head.SeqTokens)/took)
	}
	add("net/fetched_bytes", float64(m.fetched))
	add("net/peers", float64(m.peers))
	add("net/peers_known", float64(m.known))
	add("run/tokens", m.tokens())
	add("run/round", float64(m.head.Round))
	add("run/epoch", float64(m.head.Epoch))
	add("run/members", float64(m.head.Present))
	add("run/points", float64(m.points))
	if t := m.trust; t != nil {
		add("trust/checks", float64(t.Drawn))
		add("trust/passed", float64(t.Passed))
		add("trust/disputes", float64(t.Disputed))
		add("trust/convictions", float64(t.Convicted))
		add("trust/open_checks", float64(len(t.Checks)))
		if m.own != nil {
			add("trust/stake", float64(m.own.Stake))
		}
	}
	m.addWindows(add)
	m.fetched, m.applied, m.accepted = 0, now, m.trained()
	return s
}

// addWindows adds the scalars of windows and scores.
func (m *Meter) addWindows(add func(name string, v float64)) {
	w := m.windows
	if w == nil {
		return
	}
	if w.Buckets {
		add("net/window", float64(w.Window))
		if n := len(w.Commits); n > 1 {
			add("net/commitments", float64(w.Commits[n-2].Count))
		}
	}
	if w.ScoreWindows == 0 {
		return
	}
	add("score/period", float64(w.Current))
	add("score/validators", float64(len(w.Validators)))
	add("score/emitted", float64(w.Given))
	if m.own != nil {
		if m.own.Scored {
			add("score/own", float64(m.own.Score)/score.One)
		}
		add("score/earned", float64(m.own.Earned))
	}
}
