package metrics

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/runlog"
	_ "github.com/entrain-network/entrain/tests/heap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that a test sets.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

// filled are gauges after one step, at the time of the clock.
func filled(t *testing.T, c *clock) *Gauges {
	t.Helper()
	g := New(c.now)
	deadline := uint64(c.t.Add(10 * time.Second).UnixMilli())
	for _, r := range []runlog.Record{
		{Standing: &runlog.Standing{Head: runlog.Head{Name: "my-run", Phase: "RoundTrain", DeadlineMs: deadline, SeqTokens: 10, Points: 7, Step: 1, Round: 1},
			Trust: &runlog.Trust{TrustHead: runlog.TrustHead{Percent: 5, Drawn: 9, Passed: 7, Convicted: 2, Verified: 3}}}},
		{Time: c.t, Event: event.Trained{Step: 1, Loss: 3.5, LR: 0.25, GradNorm: 2, Tokens: 10, Seconds: 1, Bytes: 1000, PeakShare: 0.5}},
		{Time: c.t, Event: event.Applied{Step: 1, Results: 4}},
	} {
		if err := g.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode, string(b)
}

func TestPrometheusReadsTheGauges(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	s, err := Serve("127.0.0.1:0", filled(t, c).Handler(func() uint64 { return 7 }), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	code, text := get(t, "http://"+s.Addr()+"/metrics")
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, text)
	}
	for _, want := range []string{
		`entrain_train_loss{run="my-run"} 3.5`,
		`entrain_train_lr{run="my-run"} 0.25`,
		`entrain_perf_flops_share{run="my-run"} 0.5`,
		`entrain_train_grad_norm{run="my-run"} 2`,
		`entrain_net_payload_bytes{run="my-run"} 1000`,
		`entrain_run_tokens{run="my-run"} 40`,
		`entrain_phase{phase="RoundTrain",run="my-run"} 1`,
		`entrain_events_total{kind="applied",run="my-run"} 1`,
		`entrain_step{run="my-run"} 1`,
		`entrain_checks_total{run="my-run"} 9`,
		`entrain_checks_passed_total{run="my-run"} 7`,
		`entrain_convictions_total{run="my-run"} 2`,
		`entrain_trust_convictions{run="my-run"} 2`,
		`entrain_log_dropped_total 7`,
		`# TYPE entrain_train_loss gauge`,
		`go_goroutines `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %q", want)
		}
	}
	if code, _ := get(t, "http://"+s.Addr()+"/"); code != http.StatusNotFound {
		t.Errorf("/ answers %d", code)
	}
}

func TestHealth(t *testing.T) {
	c := &clock{time.Unix(1000, 0)}
	if h := New(c.now).Health(); h.OK || !strings.Contains(h.Text, "no state") {
		t.Errorf("before the first state: %+v", h)
	}
	g := filled(t, c)
	for _, x := range []struct {
		after time.Duration
		code  int
	}{{5 * time.Second, 200}, {10*time.Second + lateBy, 200}, {11*time.Second + lateBy, 503}} {
		c.t = time.Unix(1000, 0).Add(x.after)
		w := httptest.NewRecorder()
		g.Handler(func() uint64 { return 0 }).ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
		var h Health
		if err := json.Unmarshal(w.Body.Bytes(), &h); err != nil {
			t.Fatal(err)
		}
		if w.Code != x.code || h.OK != (x.code == 200) || h.Run != "my-run" || h.Age != x.after.Seconds() {
			t.Errorf("after %s: status %d, %+v", x.after, w.Code, h)
		}
	}
}
