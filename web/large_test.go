package web

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/runlog"
)

// longAgo is rounds as a log tells them, which the server has read before it sees the chain.
func longAgo(d *desk, rounds uint32) {
	const second = 1000
	for n := uint32(1); n <= rounds; n++ {
		d.add(runlog.Record{Time: time.UnixMilli(int64(n) * second), Standing: &runlog.Standing{
			Height: uint64(n), TimeMs: uint64(n) * second,
			Head: runlog.Head{Run: stageRun, Steps: 200_000, SeqTokens: 128, Phase: coordinator.RoundTrain.String(), Epoch: 1, Round: n, Step: n, Points: uint64(n) * 10_000},
			Rounds: []runlog.Round{
				{Number: max(n, 2) - 1, Epoch: 1, Step: max(n, 2) - 1, OpenedMs: uint64(max(n, 2)-1) * second, Batch: 64, Final: true, Expected: runlog.Set{255}, Active: runlog.Set{255}, Accepted: runlog.Set{255}, AcceptedCount: 8},
				{Number: n, Epoch: 1, Step: n, OpenedMs: uint64(n) * second, Batch: 64, Expected: runlog.Set{255}, Active: runlog.Set{255}},
			},
		}})
	}
}

func TestHistoryOfALongRunIsBounded(t *testing.T) {
	d := newDesk("")
	longAgo(d, roundsMax+roundsMax/8)
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.past.rounds); n > roundsMax || n < roundsMax/2 {
		t.Errorf("%d rounds are kept", n)
	}
	if len(d.past.details) != detailsMax {
		t.Errorf("%d rounds are kept in detail", len(d.past.details))
	}
	d.refresh(time.Now())
	for name, c := range d.curves {
		if len(c.buckets) > 1024 {
			t.Errorf("curve %s has %d points", name, len(c.buckets))
		}
	}
	if c := d.curves[curveSeconds].buckets; len(c) < 100 || c[len(c)-1].Mean != 1 {
		t.Errorf("rounds of a second give a curve of %d points that ends with %+v", len(c), c[len(c)-1])
	}
}

// BenchmarkLargeRun opens the pages of a run with 10,000 members and 100,000 rounds. It reports the time until the first paint, until the
// page is drawn, the page's JavaScript heap, and the server's own.
func BenchmarkLargeRun(b *testing.B) {
	s := newStage(b, 10_000)
	for range 3 {
		s.round()
	}
	o := s.options()
	server, url := large(b, s, o)
	ctx := browser(b)
	page := newTab(b, ctx)
	b.ResetTimer()
	for range b.N {
		for _, p := range []struct{ name, path, drawn string }{
			{"overview", "", ".tiles b"}, {"members", "/members", "td .chip"}, {"rounds", "/rounds", "td a"},
		} {
			page.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url+"/runs/"+stageRun+p.path))
			page.wait(fmt.Sprintf("document.querySelector(%q) !== null", p.drawn))
			b.ReportMetric(value[float64](page, `performance.getEntriesByName("first-contentful-paint")[0].startTime`), p.name+"-paint-ms")
			b.ReportMetric(value[float64](page, "performance.now()"), p.name+"-drawn-ms")
			b.ReportMetric(value[float64](page, "performance.memory.usedJSHeapSize / 1e6"), p.name+"-heap-MB")
			b.ReportMetric(value[float64](page, `document.querySelectorAll("*").length`), p.name+"-elements")
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/1e6, "server-MB")
		d := server.desk(stageRun)
		begun := time.Now()
		snap := s.snapshot()
		d.observe(snap, time.Now())
		b.ReportMetric(float64(time.Since(begun).Microseconds())/1e3, "state-ms")
	}
	page.quiet("large run")
}

// large serves a run whose past is long.
func large(b *testing.B, s *stage, o Options) (*Server, string) {
	b.Helper()
	server := New(o)
	d := newDesk("")
	longAgo(d, 100_000)
	server.desks[stageRun] = d
	d.observe(s.snapshot(), time.Now())
	url, _ := listen(b, server, "127.0.0.1:0")
	return server, url
}
