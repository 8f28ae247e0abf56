package runlog

import (
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Scalars holds the measurements of one step, under names that people who train models know.
type Scalars struct {
	Time   time.Time
	Step   uint32
	Values []Scalar
}

// Scalar is one measurement.
//
//	train/loss           mean loss of the members whose commitments came, nats a token
//	train/loss_own       of this participant's share
//	train/lr             learning rate
//	train/grad_norm      Euclidean norm of the own share's gradient, before clipping
//	train/results        results that were accepted and applied
//	eval/heldout_loss    held-out loss, nats a token
//	eval/TASK/acc, eval/TASK/acc_norm  accuracies of the model on a task of choices
//	perf/tokens_per_sec  of this participant while it trained
//	perf/flops_share     of this participant while it trained: floating-point operations of the products a second, by the machine's peak
//	perf/network_tokens_per_sec  of all accepted work since the step before
//	perf/step_seconds    from the step before to this one
//	net/payload_bytes    of the own result
//	net/fetched_bytes    of others' results that came since the step before
//	net/peers            members with whom there is a connection
//	net/peers_known      members whose addresses are known
//	run/tokens           of accepted work, all members', all time
//	run/round, run/epoch, run/members, run/points (the own ones)
//	trust/checks, trust/passed, trust/disputes, trust/convictions  there were so far, in a run whose results are checked
//	trust/open_checks    those that wait for a verdict
//	trust/stake          what this participant has at stake, in tokens
//	score/own            moving average of the scores that validators gave this participant, -1 to 1
//	score/earned         tokens it was ever given for them
//	score/period, score/validators, score/emitted  period that runs, validators, tokens given to all
//	net/window           window that runs, in a run that exchanges by buckets
//	net/commitments      commitments to the newest round but one that are on the chain
type Scalar struct {
	Name  string
	Value float64
}

// Meter turns records into scalars: those of a step when its results have been applied, those of an evaluation when it is done.
type Meter struct {
	steps   [meterSteps]stepLosses // by step, as far as there is room
	fetched uint64
	peers   uint32
	known   uint64 // members whose addresses are
	points  uint64

	head     Head
	trust    *Trust   // of the newest standing, whole; nil if the run has nothing of the kind
	windows  *Windows // likewise
	own      *Member  // this participant; nil if unknown
	rounds   []Round  // of the newest standing
	applied  time.Time
	accepted uint64 // points then
}

// meterSteps is how many steps can be open at a time: with overlap, results are applied when the next step has been trained.
const meterSteps = 4

// stepLosses is what was heard of a step before its results were applied.
type stepLosses struct {
	step  uint32
	sum   float64
	heard int
	own   []Scalar // of the own share
}

// Add takes a record; ok is true when it completes something.
func (m *Meter) Add(r Record) (s Scalars, ok bool) {
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
			own = append(own, Scalar{"perf/tokens_per_sec", float64(ev.Tokens) / ev.Seconds})
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

// trained is the points given for training: there are others for verifying.
func (m *Meter) trained() uint64 {
	if m.trust == nil {
		return m.head.Points
	}
	return m.head.Points - min(m.head.Points, m.trust.Verified)
}

// stepOf is the step of a round; a commitment may come before the state that tells of its round, which is then the next.
func (m *Meter) stepOf(round uint32) uint32 {
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

// hear takes a member's loss in a step.
func (m *Meter) hear(step uint32, loss float32) *stepLosses {
	l := &m.steps[step%meterSteps]
	if l.step != step {
		*l = stepLosses{step: step}
	}
	l.sum += float64(loss)
	l.heard++
	return l
}

// apply is what is known of a step once its results are in the parameters.
func (m *Meter) apply(now time.Time, step uint32, results int) Scalars {
	s := Scalars{Time: now, Step: step}
	add := func(name string, v float64) { s.Values = append(s.Values, Scalar{name, v}) }
	if l := m.steps[step%meterSteps]; l.step == step && l.heard > 0 {
		add("train/loss", l.sum/float64(l.heard))
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

// addWindows adds what there is to say of windows and scores.
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
			add("score/own", float64(m.own.Score)/coordinator.ScoreOne)
		}
		add("score/earned", float64(m.own.Earned))
	}
}
