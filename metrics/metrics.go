// Package metrics shows a participant's newest measurements to monitoring systems: Prometheus, which asks for them, and an
// OpenTelemetry collector, to which they are sent. Their names are those of runlog.Scalar; Prometheus, which knows no slash, is given
// train/loss as entrain_train_loss.
//
// [Gauges] is a sink of a runlog.Writer. It keeps one number for each name, whatever the run's length.
package metrics

import (
	"sync"
	"time"

	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/runlog"
)

// Gauges are the newest measurements. It is safe for use by several goroutines. Make it with [New].
type Gauges struct {
	meter runlog.Meter // of the goroutine that calls Record

	mu      sync.Mutex // guards all below
	now     func() time.Time
	run     string
	names   []string // in the order of their first appearance
	values  map[string]float64
	step    uint32
	events  map[string]uint64 // by kind
	trust   runlog.TrustHead  // of the newest state
	phase   string
	overdue time.Time // when the phase should have ended; zero: no time
	seen    time.Time // when the newest state came
	onName  func(name string)
	peers   func() []p2p.PeerStatus // nil: there are none to tell of; set before the handler is made
}

// New returns gauges without values. Now is the clock, for [Gauges.Health].
func New(now func() time.Time) *Gauges {
	return &Gauges{now: now, values: map[string]float64{}, events: map[string]uint64{}}
}

// kindsMax bounds the kinds of events that are counted: there are about twenty.
const kindsMax = 64

// Record is part of runlog.Sink.
func (g *Gauges) Record(r runlog.Record) error {
	s, ok := g.meter.Add(r)
	var fresh []string
	g.mu.Lock()
	if ev := r.Event; ev != nil && (len(g.events) < kindsMax || g.events[ev.Kind] > 0) {
		g.events[ev.Kind]++
	}
	if st := r.Standing; st != nil {
		if st.Trust != nil {
			g.trust = st.Trust.TrustHead
		}
		g.run, g.phase, g.seen, g.overdue = st.Run, st.Phase, g.now(), time.Time{}
		if st.DeadlineMs > 0 && st.Phase != "WaitingForMembers" {
			g.overdue = time.UnixMilli(int64(st.DeadlineMs))
		}
	}
	if ok {
		g.step = max(g.step, s.Step)
		for _, v := range s.Values {
			if _, known := g.values[v.Name]; !known {
				g.names = append(g.names, v.Name)
				fresh = append(fresh, v.Name)
			}
			g.values[v.Name] = v.Value
		}
	}
	tell := g.onName
	g.mu.Unlock()
	for _, name := range fresh {
		if tell != nil {
			tell(name)
		}
	}
	return nil
}

// Flush is part of runlog.Sink.
func (g *Gauges) Flush() error { return nil }

// Close is part of runlog.Sink.
func (g *Gauges) Close() error { return nil }

// value is the newest of a name.
func (g *Gauges) value(name string) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.values[name]
}

// watchNames calls f with every name there is and will be.
func (g *Gauges) watchNames(f func(name string)) {
	g.mu.Lock()
	names := append([]string(nil), g.names...)
	g.onName = f
	g.mu.Unlock()
	for _, n := range names {
		f(n)
	}
}

// Health is how a participant is doing.
type Health struct {
	OK    bool    `json:"ok"`
	Text  string  `json:"text"` // what is wrong, or "ok"
	Run   string  `json:"run"`
	Phase string  `json:"phase"`
	Step  uint32  `json:"step"`
	Age   float64 `json:"state_age_seconds"` // since the newest state came
}

// lateBy is how long after a phase's deadline the next one may begin: replicas' clocks differ, and blocks take time.
const lateBy = time.Minute

// Health says whether the chain is heard from: it is not before the first state, nor when a phase has lasted longer than it can.
func (g *Gauges) Health() Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := Health{OK: true, Text: "ok", Run: g.run, Phase: g.phase, Step: g.step}
	now := g.now()
	switch {
	case g.seen.IsZero():
		h.OK, h.Text = false, "the chain has told of no state yet"
		return h
	case !g.overdue.IsZero() && now.After(g.overdue.Add(lateBy)):
		h.OK, h.Text = false, "nothing was heard from the chain since the phase should have ended: is a replica reachable?"
	}
	h.Age = now.Sub(g.seen).Seconds()
	return h
}
