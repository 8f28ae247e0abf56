package web

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/tests/browser"
	"github.com/entrain-network/entrain/view"
)

// longAgo is rounds as a log tells them, which the server has read before it sees the chain.
func longAgo(d *desk, rounds uint32) {
	const second = 1000
	for n := uint32(1); n <= rounds; n++ {
		d.add(runlog.Record{Time: time.UnixMilli(int64(n) * second), Standing: &runlog.Standing{
			Height: uint64(n), TimeMs: uint64(n) * second,
			Head: runlog.Head{Name: stageRun, Steps: 200_000, SeqTokens: 128, Phase: coordinator.RoundTrain.String(), Epoch: 1, Round: coordinator.Round(n), Step: coordinator.Step(n), Points: uint64(n) * 10_000},
			Rounds: []runlog.Round{
				{Number: coordinator.Round(max(n, 2) - 1), Epoch: 1, Step: coordinator.Step(max(n, 2) - 1), OpenedMs: uint64(max(n, 2)-1) * second, Batch: 64, Final: true, Expected: runlog.Set{255}, Active: runlog.Set{255}, Accepted: runlog.Set{255}, AcceptedCount: 8},
				{Number: coordinator.Round(n), Epoch: 1, Step: coordinator.Step(n), OpenedMs: uint64(n) * second, Batch: 64, Expected: runlog.Set{255}, Active: runlog.Set{255}},
			},
		}})
	}
}

func TestHistoryOfALongRunIsBounded(t *testing.T) {
	d := newDesk()
	longAgo(d, view.HistoryKept+view.HistoryKept/8)
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.fold.Rounds(); n > view.HistoryKept || n < view.HistoryKept/2 {
		t.Errorf("%d rounds are kept", n)
	}
	oldest := d.fold.Round(view.DetailsKept - 1).Number
	if !d.fold.Detailed(oldest) || d.fold.Detailed(oldest-1) {
		t.Errorf("round %d is the oldest that is kept in detail", oldest)
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

// What a page of a run with 10,000 members and 100,000 rounds may take.
const (
	paintMsMax = 1000
	heapMBMax  = 200
)

// The pages of a large run are painted in less than a second, and are small, however long somebody
// scrolls. The time of the first paint is that of the best of several tries: other tests may keep
// the processors busy.
func TestPagesOfALargeRunAreQuickAndSmall(t *testing.T) {
	s := newStage(t, 10_000)
	server, url := large(t, s, s.options())
	page := browser.Open(t)
	page.Do(chromedp.EmulateViewport(1280, 900))
	for _, p := range []struct{ name, path, drawn string }{
		{"overview", "", ".tiles b"}, {"members", "/members", "td .chip"}, {"rounds", "/rounds", "td a"}, {"trust", "/trust", "main .card"},
	} {
		paint, drawn := math.Inf(1), math.Inf(1)
		for range 3 {
			page.Do(chromedp.Navigate(url + "/runs/" + stageRun + p.path))
			page.Wait(fmt.Sprintf("document.querySelector(%q) !== null", p.drawn))
			drawn = min(drawn, browser.Value[float64](page, "performance.now()"))
			page.Wait(`performance.getEntriesByName("first-contentful-paint").length > 0`)
			paint = min(paint, browser.Value[float64](page, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
			if paint <= paintMsMax {
				break
			}
		}
		if p.path == "/members" || p.path == "/rounds" { // all along the table and back
			for _, at := range []string{"0.3", "0.7", "1", "0"} {
				page.Do(chromedp.Evaluate[chromedp.Void](`{const b = document.querySelector(".tablebox"); b.scrollTop = b.scrollHeight * ` + at + `; undefined}`))
				page.Wait(fmt.Sprintf("document.querySelector(%q) !== null", p.drawn))
			}
		}
		heap, elements := browser.Value[float64](page, "performance.memory.usedJSHeapSize / 1e6"), browser.Value[float64](page, `document.querySelectorAll("*").length`)
		t.Logf("%s: first paint after %.0f ms, drawn after %.0f ms, heap %.1f MB, %.0f elements", p.name, paint, drawn, heap, elements)
		if paint > paintMsMax || heap > heapMBMax || elements > 5000 {
			t.Errorf("%s: first paint after %.0f ms, heap %.0f MB, %.0f elements", p.name, paint, heap, elements)
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	begun := time.Now()
	server.desk(stageRun).observe(s.snapshot(), time.Now())
	t.Logf("the server has %d MB, a state takes it %v", m.HeapAlloc/1e6, time.Since(begun))
	page.Quiet("large run")
}

// large serves a run whose past is long.
func large(t testing.TB, s *stage, o Options) (*Server, string) {
	t.Helper()
	server := New(o)
	d := newDesk()
	longAgo(d, 100_000)
	server.desks[stageRun] = d
	d.observe(s.snapshot(), time.Now())
	url, _ := listen(t, server, "127.0.0.1:0")
	return server, url
}
