package web

import (
	"fmt"
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
	paintMost = 600 * time.Millisecond // of processors' work
	heapMBMax = 200
)

// painted opens a page again and again, and returns the least time that the browser worked for it
// until it was drawn. It logs the time of the first paint, which other work on the machine delays.
func painted(t *testing.T, page *browser.Tab, url, drawn string) time.Duration {
	t.Helper()
	page.Go(url) // the browser's process for this origin begins
	least := time.Hour
	for range 3 {
		before := page.Worked()
		page.Go(url)
		page.Wait(drawn)
		page.Wait(`performance.getEntriesByName("first-contentful-paint").length > 0`)
		least = min(least, page.Worked()-before)
		t.Logf("%s: first paint after %.0f ms", url, browser.Value[float64](page, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
		if least <= paintMost {
			break
		}
	}
	return least
}

// The pages of a large run take the browser little work to paint, and are small, however long
// somebody scrolls.
func TestPagesOfALargeRunAreQuickAndSmall(t *testing.T) {
	s := newStage(t, 10_000)
	server, url := large(t, s, s.options())
	page := browser.Open(t)
	page.Do(chromedp.EmulateViewport(1280, 900))
	for _, p := range []struct{ name, path, drawn string }{
		{"overview", "", ".tiles b"}, {"members", "/members", "td .chip"}, {"rounds", "/rounds", "td a"}, {"trust", "/trust", "main .card"},
	} {
		work := painted(t, page, url+"/runs/"+stageRun+p.path, fmt.Sprintf("document.querySelector(%q) !== null", p.drawn))
		if p.path == "/members" || p.path == "/rounds" { // all along the table and back
			for _, at := range []string{"0.3", "0.7", "1", "0"} {
				page.Do(chromedp.Evaluate[chromedp.Void](`{const b = document.querySelector(".tablebox"); b.scrollTop = b.scrollHeight * ` + at + `; undefined}`))
				page.Wait(fmt.Sprintf("document.querySelector(%q) !== null", p.drawn))
			}
		}
		heap, elements := browser.Value[float64](page, "performance.memory.usedJSHeapSize / 1e6"), browser.Value[float64](page, `document.querySelectorAll("*").length`)
		t.Logf("%s: drawn with %v of work, heap %.1f MB, %.0f elements", p.name, work, heap, elements)
		if work > paintMost || heap > heapMBMax || elements > 5000 {
			t.Errorf("%s: drawn with %v of work, heap %.0f MB, %.0f elements", p.name, work, heap, elements)
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
