package metrics

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/runlog"
)

// everything is what a participant shows that has met all there is: checks, scores, peers, an evaluation.
func everything(t *testing.T) string {
	t.Helper()
	c := &clock{time.Unix(1000, 0)}
	g := New(c.now)
	own := key.Public{1}
	standing := func(step uint32) *runlog.Standing {
		return &runlog.Standing{
			Head:    runlog.Head{Name: "my-run", Own: own.String(), Phase: "RoundTrain", SeqTokens: 10, Points: uint64(7 * step), Step: coordinator.Step(step), Round: coordinator.Round(step)},
			Members: []runlog.Member{{MemberState: coordinator.MemberState{Key: own, Scored: true, Stake: 5}}},
			Trust:   &runlog.Trust{TrustHead: runlog.TrustHead{Percent: 5, Drawn: 9, Passed: 7, Disputed: 2, Convicted: 1}},
			Windows: &runlog.Windows{WindowsHead: runlog.WindowsHead{ScoreWindows: 3}},
		}
	}
	for step := uint32(1); step <= 2; step++ {
		c.t = c.t.Add(time.Second)
		for _, r := range []runlog.Record{
			{Standing: standing(step)},
			{Time: c.t, Event: event.Trained{Step: coordinator.Step(step), Loss: 3.5, LR: 0.25, GradNorm: 2, Tokens: 10, Seconds: 1, Bytes: 1000, PeakShare: 0.5}},
			{Time: c.t, Event: event.Applied{Step: coordinator.Step(step), Results: 4}},
			{Time: c.t, Event: event.Evaluated{Step: coordinator.Step(step), HeldOut: 4.5}},
		} {
			if err := g.Record(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.PeersFrom(func() []p2p.PeerStatus {
		return []p2p.PeerStatus{{Key: key.Public{2}, Way: "direct", RTT: time.Millisecond, Down: 1, Up: 1, Received: 1, Sent: 1}}
	})
	s, err := Serve("127.0.0.1:0", g.Handler(func() uint64 { return 0 }), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	code, text := get(t, "http://"+s.Addr()+"/metrics")
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, text)
	}
	return text
}

// TestGrafanaAsksForWhatThereIs checks each query of the dashboard: its metrics and labels must be at /metrics, and rates
// and increases must be of counters.
func TestGrafanaAsksForWhatThereIs(t *testing.T) {
	b, err := os.ReadFile("../packaging/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Templating struct{ List []struct{ Query any } }
		Panels     []struct {
			Type, Title, Description string
			GridPos                  struct{ X, Y, W, H int }
			Targets                  []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	text := everything(t)
	labels, kinds := map[string][]string{}, map[string]string{}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(strings.TrimSpace(rest), " ")
			kinds[name] = kind
		} else if m := regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? `).FindStringSubmatch(line); m != nil {
			labels[m[1]] = []string{"instance", "job"} // of the scrape
			for _, l := range regexp.MustCompile(`([a-z]+)="`).FindAllStringSubmatch(m[2], -1) {
				labels[m[1]] = append(labels[m[1]], l[1])
			}
		}
	}
	metric := regexp.MustCompile(`\b((?:entrain|process|go)_[a-z_]+)`)
	selected := regexp.MustCompile(`([a-z]+)=~?"`)
	check := func(where, expr, legend string) {
		t.Helper()
		names := metric.FindAllString(expr, -1)
		if len(names) != 1 {
			t.Fatalf("%s: %q is of %d metrics", where, expr, len(names))
		}
		have, ok := labels[names[0]]
		if !ok {
			t.Errorf("%s: /metrics lacks %s", where, names[0])
		}
		used := selected.FindAllStringSubmatch(expr, -1)
		used = append(used, regexp.MustCompile(`\{\{([a-z]+)\}\}`).FindAllStringSubmatch(legend, -1)...)
		for _, by := range regexp.MustCompile(`by \(([a-z]+)\)`).FindAllStringSubmatch(expr, -1) {
			used = append(used, by)
			for _, l := range regexp.MustCompile(`\{\{([a-z]+)\}\}`).FindAllStringSubmatch(legend, -1) {
				if l[1] != by[1] {
					t.Errorf("%s: the legend names %s, by which is not grouped", where, l[1])
				}
			}
		}
		for _, l := range used {
			if !slices.Contains(have, l[1]) {
				t.Errorf("%s: %s has no label %s", where, names[0], l[1])
			}
		}
		if counted := strings.Contains(expr, "rate(") || strings.Contains(expr, "increase("); counted && kinds[names[0]] != "counter" {
			t.Errorf("%s: %s is of a %s", where, expr, kinds[names[0]])
		}
	}
	queries := 0
	for _, p := range board.Panels {
		if p.Type != "row" && (p.Title == "" || p.Description == "" || len(p.Targets) == 0 || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24) {
			t.Errorf("panel %q: %+v", p.Title, p)
		}
		for _, q := range p.Targets {
			check(p.Title, q.Expr, q.LegendFormat)
			queries++
		}
	}
	for _, v := range board.Templating.List {
		if q, ok := v.Query.(map[string]any); ok {
			check("variable", strings.TrimSuffix(strings.TrimPrefix(q["query"].(string), "label_values("), ")"), "")
		}
	}
	if queries < 20 {
		t.Errorf("%d queries", queries)
	}
}
