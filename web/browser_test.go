package web

import (
	"context"
	"fmt"
	"image/color"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The pages are tested in the system's Chromium, without a window. Where there is none, these tests are skipped.
// ENTRAIN_SCREENSHOTS names a directory for pictures of all pages.

// browser starts Chromium, or skips the test.
func browser(t testing.TB) context.Context {
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
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil { // the browser lives as long as the context of the first call
		t.Fatal(err)
	}
	return ctx
}

// tab is a page that is looked at, and what it wrote to the console.
type tab struct {
	t   testing.TB
	ctx context.Context
	mu  sync.Mutex // guards said
	// said is every warning, error and uncaught exception.
	said []string
}

func newTab(t testing.TB, ctx context.Context) *tab {
	t.Helper()
	b := &tab{t: t, ctx: ctx}
	b.do(chromedp.Navigate("about:blank"))
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

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// wait waits until an expression is true on the page.
func (b *tab) wait(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(20*time.Millisecond))); err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("%s: %v; the page says:\n%.2000s", expression, err, text)
	}
}

func value[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// quiet fails if the page has complained of anything.
func (b *tab) quiet(where string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.said {
		b.t.Errorf("%s: console: %s", where, s)
	}
	b.said = nil
}

func (b *tab) scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// pages are all there are, each with what is there when it is drawn.
var pages = []struct{ name, path, drawn string }{
	{"runs", "/", ".runs .card"},
	{"overview", "/runs/" + stageRun, ".tiles b"},
	{"members", "/runs/" + stageRun + "/members", "td .chip"},
	{"member", "/runs/" + stageRun + "/members/" + memberKey(1).String(), "td .chip"},
	{"rounds", "/runs/" + stageRun + "/rounds", "td a"},
	{"round", "/runs/" + stageRun + "/rounds/2", "td .chip"},
	{"trust", "/runs/" + stageRun + "/trust", ".disputes summary"},
	{"model", "/runs/" + stageRun + "/model", "details"},
	{"join", "/runs/" + stageRun + "/join", ".command code"},
}

func TestPagesAreSoundInEveryLook(t *testing.T) {
	ctx := browser(t)
	s := newStage(t, 9, distrusting)
	o := s.options()
	log := s.keepLog()
	checkpoints := t.TempDir()
	writeCheckpoint(t, filepath.Join(checkpoints, "step-000010"))
	o.Node = &Node{Run: stageRun, Key: memberKey(0).String(), Log: log, Checkpoints: checkpoints}
	url, _ := serve(t, o, "")
	get(t, url+api, nil)
	for range 30 {
		s.round()
	}
	s.silent[4] = true
	for range 3 {
		s.round()
	}
	s.trials()
	b := newTab(t, ctx)
	for _, device := range []struct {
		name          string
		width, height int64
	}{{"desktop", 1280, 900}, {"phone", 390, 844}} {
		b.do(chromedp.EmulateViewport(device.width, device.height))
		for _, p := range pages {
			b.do(chromedp.Navigate(url + p.path))
			b.wait(fmt.Sprintf("document.querySelector(%q) !== null", p.drawn))
			for _, scheme := range []string{"light", "dark"} {
				b.scheme(scheme)
				where := fmt.Sprintf("%s, %s, %s", p.name, scheme, device.name)
				b.quiet(where)
				for _, fault := range value[[]string](b, audit) {
					t.Errorf("%s: %s", where, fault)
				}
				for _, fault := range contrastFaults(value[[]textLook](b, looks)) {
					t.Errorf("%s: %s", where, fault)
				}
				b.keep(fmt.Sprintf("%s-%s-%s.png", p.name, scheme, device.name))
			}
		}
	}
}

// keep keeps a picture of the page if pictures are asked for.
func (b *tab) keep(name string) {
	b.t.Helper()
	dir := os.Getenv("ENTRAIN_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestOverviewFollowsTheRun(t *testing.T) {
	ctx := browser(t)
	s := newStage(t, 5)
	o := s.options()
	o.Node = &Node{Run: stageRun, Key: memberKey(0).String(), Log: s.keepLog()}
	url, stop := serve(t, o, "")
	get(t, url+api, nil)
	for range 4 {
		s.round()
	}
	b := newTab(t, ctx)
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url+"/runs/"+stageRun))
	const line = `document.querySelector(".chart .line.c0")?.getAttribute("d")`
	b.wait(line + " !== undefined")
	before := value[string](b, line)
	b.wait(`document.querySelector("#link").dataset.how === "live"`)

	// Curves move as rounds end.
	for range 3 {
		s.round()
	}
	b.wait(fmt.Sprintf("%s !== %q", line, before))
	b.wait(`[...document.querySelectorAll(".tiles > div")].some((d) => d.textContent.startsWith("Step8"))`)

	// Curves can be read with the keyboard.
	b.do(chromedp.Focus(chromedp.CSS(".reader")), chromedp.KeyEvent("\u0302"))
	b.wait(`/^step \d+, .* training \d/.test(document.querySelector(".reader").getAttribute("aria-valuetext"))`)

	// A member that is killed shows as dropped, with the reason on its page.
	s.silent[2] = true
	for range 3 {
		s.round()
	}
	b.wait(fmt.Sprintf(`document.querySelector('.board tr[data-key="%s"] .chip')?.dataset.status === "dropped"`, memberKey(2)))
	b.do(chromedp.Click(chromedp.CSS(fmt.Sprintf(`.board tr[data-key="%s"] a`, memberKey(2)))))
	b.wait(`document.querySelector("main").innerText.includes("held by 0 of 5 witnesses")`)
	b.quiet("before the server ended")

	// The page says that the server is gone, and goes on by itself when there is one again.
	stop()
	b.wait(`document.querySelector("#link").textContent.startsWith("Disconnected")`)
	again, _ := serve(t, o, strings.TrimPrefix(url, "http://"))
	if again != url {
		t.Fatalf("the second server is at %s, the first was at %s", again, url)
	}
	b.wait(`document.querySelector("#link").dataset.how === "live"`)
	b.do(chromedp.Click(chromedp.CSS("nav a")))
	s.round()
	b.wait(fmt.Sprintf(`[...document.querySelectorAll(".tiles > div")].some((d) => d.textContent.startsWith("Step%d"))`, s.state.Step()))

	// It also says when the server does not reach the chain.
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	b.wait(`document.querySelector("#link").textContent.startsWith("The chain does not answer")`)
}

// Samples and accuracies along the run are shown, and the page says how far back it knows.
func TestWhatTheModelCanDoIsShown(t *testing.T) {
	ctx := browser(t)
	s := newStage(t, 3)
	o := s.options()
	o.Node = &Node{Run: stageRun, Key: memberKey(0).String(), Log: s.keepLog()}
	url, _ := serve(t, o, "")
	get(t, url+api, nil)
	for range 12 {
		s.round()
	}
	b := newTab(t, ctx)
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url+"/runs/"+stageRun))
	b.wait(`document.querySelector(".samples")?.innerText.includes("After step 11")`)
	b.wait(`document.querySelector(".samples .sample + .sample blockquote").textContent === "If <b>colours</b> are bent 11 times\nby the prism"`)
	b.wait(`[...document.querySelectorAll(".chart h2")].some((h) => h.textContent === "piqa")`)
	b.wait(`document.querySelector(".past").hidden`)
	b.do(chromedp.Click(chromedp.CSS(`.samples a`)))
	b.wait(`document.querySelector(".along output")?.textContent === "11 (3 of 3)"`)
	b.do(chromedp.Focus(chromedp.CSS("#sample-step")), chromedp.KeyEvent("\u0302"))
	b.wait(`document.querySelector(".along output").textContent === "6 (2 of 3)" && document.querySelector(".sample").innerText.includes("bent 6 times")`)
	b.quiet("samples")

	// Without a participant's log the past begins with the server, and the pages say so.
	alone, _ := serve(t, s.options(), "")
	get(t, alone+api, nil)
	for _, path := range []string{"", "/rounds"} {
		b.do(chromedp.Navigate(alone + "/runs/" + stageRun + path))
		b.wait(`/when this server began to look/.test(document.querySelector("main").innerText)`)
	}
	b.quiet("without a log")
}

func TestPromptIsContinuedOnThePage(t *testing.T) {
	ctx := browser(t)
	s := newStage(t, 2)
	o := s.options()
	checkpoints := t.TempDir()
	writeCheckpoint(t, filepath.Join(checkpoints, "step-000010"))
	o.Node = &Node{Run: stageRun, Checkpoints: checkpoints, Generate: echo}
	url, _ := serve(t, o, "")
	get(t, url+api, nil)
	b := newTab(t, ctx)
	b.do(chromedp.Navigate(url + "/runs/" + stageRun + "/model"))
	b.wait(`document.querySelector(".prompt form") !== null`)
	b.do(chromedp.SetValue(chromedp.CSS("#prompt"), "<b>Light</b> "), chromedp.Click(chromedp.CSS(".prompt .primary")))
	b.wait(`document.querySelector(".answer").textContent === "<b>Light</b> is 12 <i>bent</i>"`)
	b.wait(`document.querySelector(".prompt").textContent.includes("Done.")`)
	b.quiet("model")
}

// textLook is how a piece of text is painted.
type textLook struct {
	Text  string   `json:"text"`
	Color [4]uint8 `json:"color"`
	Under [4]uint8 `json:"under"`
	Size  float64  `json:"size"` // CSS pixels
	Bold  bool     `json:"bold"`
}

// contrastFaults returns the texts whose contrast is below what WCAG 2.2, 1.4.3, asks for.
func contrastFaults(looks []textLook) []string {
	var faults []string
	for _, l := range looks {
		want := 4.5
		if l.Size >= 24 || l.Bold && l.Size >= 18.66 {
			want = 3
		}
		fore, under := color.RGBA{l.Color[0], l.Color[1], l.Color[2], 255}, color.RGBA{l.Under[0], l.Under[1], l.Under[2], 255}
		if got := contrast(fore, under); got < want {
			faults = append(faults, fmt.Sprintf("%q has contrast %.2f, want %.1f (%v on %v)", l.Text, got, want, fore, under))
		}
	}
	return faults
}

// contrast is the contrast ratio of WCAG 2.2.
func contrast(a, b color.RGBA) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(c color.RGBA) float64 {
	channel := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*channel(c.R) + 0.7152*channel(c.G) + 0.0722*channel(c.B)
}

func TestContrastIsThatOfWCAG(t *testing.T) {
	black, white, grey := color.RGBA{0, 0, 0, 255}, color.RGBA{255, 255, 255, 255}, color.RGBA{0x76, 0x76, 0x76, 255}
	if got := contrast(black, white); math.Abs(got-21) > 1e-9 {
		t.Errorf("black on white has %g, want 21", got)
	}
	if got := contrast(white, grey); math.Abs(got-4.54) > 0.005 { // the lightest grey that passes
		t.Errorf("#767676 on white has %g, want 4.54", got)
	}
	if f := contrastFaults([]textLook{{Text: "x", Color: [4]uint8{200, 200, 200, 255}, Under: [4]uint8{255, 255, 255, 255}, Size: 14}}); len(f) != 1 {
		t.Errorf("light grey on white: %v", f)
	}
}
