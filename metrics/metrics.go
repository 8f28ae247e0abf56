// Package metrics measures a participation: a [Meter] turns the records of a runlog into numbers
// under names that people who train models know ([Scalar]). Four sinks of a runlog.Writer pass
// them on: [JSONLines] to metrics.jsonl, [TensorBoard] to event files, [WandB] to an offline run of
// Weights & Biases, and [Gauges] to Prometheus.
//
// Gauges keeps the newest number for each name, with underscores for slashes: train/loss becomes
// entrain_train_loss. It also reports whether the participant is healthy. A collector of another
// monitoring system scrapes the same page.
package metrics

import (
	"sync"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/runlog"
)

// Gauges holds the newest measurements. Several goroutines may use it. Make one with [New].
type Gauges struct {
	meter Meter // used by the goroutine that calls Record

	mu      sync.Mutex // guards all below
	now     func() time.Time
	run     string
	names   []string // in the order of their first appearance
	values  map[string]float64
	step    coordinator.Step
	events  map[string]uint64 // by kind
	trust   runlog.TrustHead  // from the newest state
	phase   string
	overdue time.Time // when the phase should have ended; zero if time does not end it
	seen    time.Time // when the newest state came

	peers func() []p2p.PeerStatus // may be nil; set before Handler
}

// New returns gauges without values. [Gauges.Health] reads the clock now.
func New(now func() time.Time) *Gauges {
	return &Gauges{now: now, values: map[string]float64{}, events: map[string]uint64{}}
}

// kindsMax bounds the kinds of events that are counted. There are about twenty.
const kindsMax = 64

// Record implements runlog.Sink.
func (g *Gauges) Record(r runlog.Record) error {
	s, ok := g.meter.Add(r)
	g.mu.Lock()
	defer g.mu.Unlock()
	if ev := r.Event; ev != nil && (len(g.events) < kindsMax || g.events[ev.Kind()] > 0) {
		g.events[ev.Kind()]++
	}
	if st := r.Standing; st != nil {
		if st.Trust != nil {
			g.trust = st.Trust.TrustHead
		}
		g.run, g.phase, g.seen, g.overdue = st.Name, st.Phase, g.now(), time.Time{}
		if st.DeadlineMs > 0 && st.Phase != "WaitingForMembers" {
			g.overdue = time.UnixMilli(int64(st.DeadlineMs))
		}
	}
	if !ok {
		return nil
	}
	g.step = max(g.step, s.Step)
	for _, v := range s.Values {
		if _, known := g.values[v.Name]; !known {
			g.names = append(g.names, v.Name)
		}
		g.values[v.Name] = v.Value
	}
	return nil
}

// Flush implements runlog.Sink.
func (g *Gauges) Flush() error { return nil }

// Close implements runlog.Sink.
func (g *Gauges) Close() error { return nil }

// Health reports how a participant is doing.
type Health struct {
	OK    bool             `json:"ok"`
	Text  string           `json:"text"` // the fault, or "ok"
	Run   string           `json:"run"`
	Phase string           `json:"phase"`
	Step  coordinator.Step `json:"step"`
	Age   float64          `json:"state_age_seconds"` // since the newest state came
}

// lateBy is how long after a phase's deadline the next phase may begin: the clocks of replicas
// differ, and blocks take time.
const lateBy = time.Minute

// Health reports whether news arrive from the chain. They do not before the first state, or when a
// phase lasts longer than it can.
func (g *Gauges) Health() Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := Health{OK: true, Text: "ok", Run: g.run, Phase: g.phase, Step: g.step}
	now := g.now()
	switch {
	case g.seen.IsZero():
		h.OK, h.Text = false, "no state from the chain yet"
		return h
	case !g.overdue.IsZero() && now.After(g.overdue.Add(lateBy)):
		h.OK, h.Text = false, "no news from the chain since the phase should have ended: is a replica reachable?"
	}
	h.Age = now.Sub(g.seen).Seconds()
	return h
}
