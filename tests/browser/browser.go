// Package browser opens pages for tests in the system's Chromium, headless. Tests are skipped if
// there is none. ENTRAIN_SCREENSHOTS names a directory for pictures of pages.
package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// Tab is an open page. An error fails the test at once.
type Tab struct {
	t        testing.TB
	ctx      context.Context
	patience time.Duration
	mu       sync.Mutex // guards said
	// said holds warnings, errors and uncaught exceptions of the console.
	said []string
}

// A Step is an action on a page.
type Step = chromedp.Action[chromedp.Void]

// Main runs a package's tests, and then ends the browser that they share. Packages whose tests call
// [Open] have a TestMain that runs it.
type Main struct{ *testing.M }

// Run runs the tests and returns the exit status.
func (m Main) Run() int {
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		for _, end := range slices.Backward(ends) {
			end()
		}
	}()
	return m.M.Run()
}

var (
	mu      sync.Mutex      // guards what follows
	started context.Context // of the browser; nil before it starts
	ends    []func()        // end the browser, the last first
)

// start returns the browser at path, which it starts at the first call.
func start(path string) (context.Context, error) {
	mu.Lock()
	defer mu.Unlock()
	if started != nil {
		return started, nil
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(ctx)
	ends = append(ends, cancel, end)
	err := chromedp.Do(ctx) // the browser ends with this first context
	if err == nil {
		started = ctx
	}
	return ctx, err
}

// Open opens an empty page in Chromium until the test ends, or skips the test. The tests of a
// package share the browser, which takes half a second of a processor to start.
func Open(t testing.TB) *Tab {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium here; install it (Debian: apt-get install chromium) to test the pages")
	}
	shared, err := start(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := chromedp.NewContext(shared)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil { // the page lives as long as this first context
		t.Fatal(err)
	}
	b := &Tab{t: t, ctx: ctx, patience: time.Minute}
	b.Do(chromedp.Navigate("about:blank"))
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning {
				b.mu.Lock()
				b.said = append(b.said, m.String())
				b.mu.Unlock()
			}
		}
	}()
	return b
}

// Patience sets the timeout of Wait: longer for pages of a run with processes than for those of a
// stage.
func (b *Tab) Patience(d time.Duration) { b.patience = d }

// Do runs steps in order.
func (b *Tab) Do(steps ...Step) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 60*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// Go opens an address.
func (b *Tab) Go(url string) {
	b.t.Helper()
	b.Do(chromedp.Navigate(url))
}

// Click clicks the first element that matches a selector.
func (b *Tab) Click(selector string) {
	b.t.Helper()
	b.Do(chromedp.Click(chromedp.CSS(selector)))
}

// Size sets the size of the window.
func (b *Tab) Size(width, height int64) {
	b.t.Helper()
	b.Do(chromedp.EmulateViewport(width, height))
}

// Scheme sets the colour scheme, "light" or "dark".
func (b *Tab) Scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// Wait waits until an expression is true on the page.
func (b *Tab) Wait(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, b.patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(20*time.Millisecond))); err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("%s: %v; the page says:\n%.2000s", expression, err, text)
	}
}

// Value returns the value of an expression on the page, or of its promise.
func Value[T any](b *Tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%.200s: %v", expression, err)
	}
	return v
}

// Worked returns how long processors have worked for the process that paints the page. Other work
// on the machine does not change it, as it does the time until a page is painted. Pages of one
// origin share the process.
func (b *Tab) Worked() time.Duration {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, performance.Enable, performance.EnableParams{})
	if err != nil {
		b.t.Fatal(err)
	}
	m, err := chromedp.Call(b.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		b.t.Fatal(err)
	}
	i := slices.IndexFunc(m.Metrics, func(m *performance.Metric) bool { return m.Name == "ProcessTime" })
	if i < 0 {
		b.t.Fatal("the browser does not say how long it worked")
	}
	return time.Duration(m.Metrics[i].Value * float64(time.Second))
}

// Quiet fails the test if the console has complaints since the last call of Said or Quiet.
func (b *Tab) Quiet(where string) {
	b.t.Helper()
	for _, s := range b.Said() {
		b.t.Errorf("%s: console: %s", where, s)
	}
}

// Said returns the console's complaints since its last call.
func (b *Tab) Said() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := slices.Clone(b.said)
	b.said = nil
	return said
}

// Keep saves a picture of the page if ENTRAIN_SCREENSHOTS is set.
func (b *Tab) Keep(name string) {
	b.t.Helper()
	dir := os.Getenv("ENTRAIN_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
