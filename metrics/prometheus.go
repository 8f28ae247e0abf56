package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/entrain-network/entrain/httpserve"
	"github.com/entrain-network/entrain/runlog"
)

// collector shows the gauges to Prometheus.
type collector struct{ g *Gauges }

// Describe sends nothing: gauges become known when they get values.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	send := func(kind prometheus.ValueType, name, help string, v float64, labels ...string) {
		names, values := []string{"run"}, []string{c.g.run}
		for i := 0; i < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, labels[i+1])
		}
		m, err := prometheus.NewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, v, values...)
		if err == nil { // it fails for an event kind that is not UTF-8
			out <- m
		}
	}
	if c.g.run == "" {
		return
	}
	for _, name := range c.g.names {
		send(prometheus.GaugeValue, "entrain_"+strings.ReplaceAll(name, "/", "_"),
			"Newest "+name+" of this participant.", c.g.values[name])
	}
	send(prometheus.GaugeValue, "entrain_step", "Newest step applied.", float64(c.g.step))
	send(prometheus.GaugeValue, "entrain_phase", "1 for the current phase.", 1, "phase", c.g.phase)
	for _, v := range []struct {
		name, help string
		n          uint32
	}{
		{"entrain_checks_total", "Results drawn for a check.", c.g.trust.Drawn},
		{"entrain_checks_passed_total", "Checks passed.", c.g.trust.Passed},
		{"entrain_disputes_total", "Disputes about results.", c.g.trust.Disputed},
		{"entrain_convictions_total", "Members convicted.", c.g.trust.Convicted},
	} {
		if c.g.trust != (runlog.TrustHead{}) {
			send(prometheus.CounterValue, v.name, v.help, float64(v.n))
		}
	}
	for kind, n := range c.g.events {
		send(prometheus.CounterValue, "entrain_events_total", "Events by kind.", float64(n), "kind", kind)
	}
}

// Handler serves /metrics for Prometheus, and /healthz, which answers 200 or 503 with a [Health] in
// JSON. Dropped returns the number of records that the log has dropped.
func (g *Gauges) Handler(dropped func() uint64) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{g}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "entrain_log_dropped_total", Help: "Records dropped from the log."},
			func() float64 { return float64(dropped()) }))
	if g.peers != nil {
		registry.MustRegister(peersCollector{g.peers})
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		h := g.Health()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if !h.OK {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h) // fails only if the client has gone
	})
	return mux
}

// Server is a running HTTP server.
type Server struct {
	addr  string
	stop  context.CancelFunc
	ended chan error
}

// Serve serves a handler on the local address HOST:PORT until Close.
func Serve(addr string, h http.Handler, log *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serve metrics on %q: %w", addr, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{addr: l.Addr().String(), stop: stop, ended: make(chan error, 1)}
	go func() {
		err := httpserve.Run(ctx, l, &http.Server{
			Handler: httpserve.LocalOnly(h, l.Addr()), ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		}, time.Second)
		if err != nil {
			log.Error("serving metrics", "error", err)
		}
		s.ended <- err
	}()
	return s, nil
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() string { return s.addr }

// Close stops the server, giving requests under way a moment to finish.
func (s *Server) Close() error {
	s.stop()
	return <-s.ended
}
