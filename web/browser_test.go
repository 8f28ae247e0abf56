package web

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tests/browser"
)

// A page is drawn when it has what the selector drawn matches.
type page struct{ name, path, drawn string }

// pages are all there are.
var pages = []page{
	{"runs", "/", ".runs .card"},
	{"overview", "/runs/" + stageRun, ".tiles b"},
	{"members", "/runs/" + stageRun + "/members", "td .chip"},
	{"member", "/runs/" + stageRun + "/members/" + memberKey(1).String(), "td .chip"},
	{"rounds", "/runs/" + stageRun + "/rounds", "td a"},
	{"round", "/runs/" + stageRun + "/rounds/2", "td .chip"},
	{"trust", "/runs/" + stageRun + "/trust", ".disputes summary"},
	{"scores", "/runs/" + stageRun + "/scores", "main .card tbody tr"},
	{"model", "/runs/" + stageRun + "/model", "details"},
	{"join", "/runs/" + stageRun + "/join", ".command code"},
}

// fullStage serves a run that has had everything that pages can show, and returns the address.
func fullStage(t *testing.T) string {
	t.Helper()
	s := newStage(t, 9, distrusting, scoring, func(p *spec.Spec) {
		p.About = &spec.About{
			Description: "A small model that learns to write as Newton did, from his Opticks.\nAnybody may take part: the text is free, and so is what becomes of it.",
			License:     "Apache-2.0", Links: []string{"https://example.org/opticks", "https://example.org/" + strings.Repeat("long-", 20)},
		}
	})
	o := s.options()
	log := s.keepLog()
	checkpoints := t.TempDir()
	writeCheckpoint(t, filepath.Join(checkpoints, "step-000010"))
	o.Node = &Node{Run: stageRun, Log: log, Checkpoints: checkpoints, Generate: echo}
	url, _ := serve(t, o, "")
	get(t, url+api, nil)
	s.scorePeriods()
	for range 24 {
		s.round()
	}
	s.silent[4] = true
	for range 3 {
		s.round()
	}
	s.trials()
	return url
}

// Each page is looked at, light and dark, on a desktop and a phone. Each look is checked by rules of
// ours and, where axe is installed, by axe's.
func TestPagesAreSoundInEveryLook(t *testing.T) {
	t.Parallel()
	url := fullStage(t)
	var axe *browser.Axe
	t.Run("axe", func(t *testing.T) {
		found := browser.FindAxe(t)
		axe = &found
	})
	for _, device := range []struct {
		name          string
		width, height int64
		pages         []page
	}{{"desktop", 1280, 900, pages}, {"phone", 390, 844, pages}, {"wide", 2560, 1440, pages}} {
		t.Run(device.name, func(t *testing.T) {
			t.Parallel()
			b := browser.Open(t)
			b.Size(device.width, device.height)
			for _, p := range device.pages {
				b.Go(url + p.path)
				b.Wait(fmt.Sprintf("document.querySelector(%q) !== null", p.drawn))
				for _, scheme := range []string{"light", "dark"} {
					b.Scheme(scheme)
					isSound(t, b, axe, fmt.Sprintf("%s-%s-%s", p.name, scheme, device.name))
				}
			}
		})
	}
}

// isSound checks what the tab shows. axe may be nil.
func isSound(t *testing.T, b *browser.Tab, axe *browser.Axe, where string) {
	b.Quiet(where)
	faults := append(browser.Value[[]string](b, audit), contrastFaults(browser.Value[[]textLook](b, looks))...)
	b.Keep(where)
	switch {
	case axe == nil, strings.HasSuffix(where, "-wide"), strings.HasSuffix(where, "-dark-phone"): // as on a desktop
	case strings.Contains(where, "-dark-"):
		faults = append(faults, axe.ColourFaults(b)...) // the rest is as it is in the light
	default:
		faults = append(faults, axe.Faults(b)...)
	}
	for _, fault := range faults {
		t.Errorf("%s: %s", where, fault)
	}
}

func TestOverviewFollowsTheRun(t *testing.T) {
	t.Parallel()
	s := newStage(t, 5)
	o := s.options()
	o.Node = &Node{Run: stageRun, Log: s.keepLog()}
	url, stop := serve(t, o, "")
	get(t, url+api, nil)
	for range 4 {
		s.round()
	}
	b := browser.Open(t)
	b.Do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url+"/runs/"+stageRun))
	const line = `document.querySelector(".chart .line.c0")?.getAttribute("d")`
	b.Wait(line + " !== undefined")
	before := browser.Value[string](b, line)
	b.Wait(`document.querySelector("#link").dataset.how === "live"`)

	// Curves move as rounds end.
	for range 3 {
		s.round()
	}
	b.Wait(fmt.Sprintf("%s !== %q", line, before))
	b.Wait(`[...document.querySelectorAll(".tiles > div")].some((d) => d.textContent.startsWith("Step8"))`)

	// Curves can be read with the keyboard.
	b.Do(chromedp.Focus(chromedp.CSS(".reader")), chromedp.KeyEvent("\u0302"))
	b.Wait(`/^step \d+, .* training \d/.test(document.querySelector(".reader").getAttribute("aria-valuetext"))`)

	// A member that is killed shows as dropped, with the reason on its page.
	s.silent[2] = true
	for range 3 {
		s.round()
	}
	b.Wait(fmt.Sprintf(`document.querySelector('.board tr[data-key="%s"] .chip')?.dataset.status === "dropped"`, memberKey(2)))
	b.Do(chromedp.Click(chromedp.CSS(fmt.Sprintf(`.board tr[data-key="%s"] a`, memberKey(2)))))
	b.Wait(`document.querySelector("main").innerText.includes("held by 0 of 5 witnesses")`)
	b.Quiet("before the server ended")

	// The page says that the server is gone, and goes on by itself when there is one again.
	stop()
	b.Wait(`document.querySelector("#link").textContent.startsWith("Disconnected")`)
	again, _ := serve(t, o, strings.TrimPrefix(url, "http://"))
	if again != url {
		t.Fatalf("the second server is at %s, the first was at %s", again, url)
	}
	b.Wait(`document.querySelector("#link").dataset.how === "live"`)
	b.Do(chromedp.Click(chromedp.CSS("nav a")))
	s.round()
	b.Wait(fmt.Sprintf(`[...document.querySelectorAll(".tiles > div")].some((d) => d.textContent.startsWith("Step%d"))`, s.state.Step()))

	// It also says when the server does not reach the chain.
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	b.Wait(`document.querySelector("#link").textContent.startsWith("The chain does not answer")`)
}

// Samples and accuracies along the run are shown, and the page says how far back it knows.
func TestWhatTheModelCanDoIsShown(t *testing.T) {
	t.Parallel()
	s := newStage(t, 3)
	o := s.options()
	o.Node = &Node{Run: stageRun, Log: s.keepLog()}
	url, _ := serve(t, o, "")
	get(t, url+api, nil)
	for range 12 {
		s.round()
	}
	b := browser.Open(t)
	b.Do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(url+"/runs/"+stageRun))
	b.Wait(`document.querySelector(".samples")?.innerText.includes("After step 11")`)
	b.Wait(`document.querySelector(".samples .sample + .sample blockquote").textContent === "If <b>colours</b> are bent 11 times\nby the prism"`)
	b.Wait(`[...document.querySelectorAll(".chart h2")].some((h) => h.textContent === "piqa")`)
	b.Wait(`document.querySelector(".past").hidden`)
	b.Do(chromedp.Click(chromedp.CSS(`.samples a`)))
	b.Wait(`document.querySelector(".along output")?.textContent === "11 (3 of 3)"`)
	b.Do(chromedp.Focus(chromedp.CSS("#sample-step")), chromedp.KeyEvent("\u0302"))
	b.Wait(`document.querySelector(".along output").textContent === "6 (2 of 3)" && document.querySelector(".sample").innerText.includes("bent 6 times")`)
	b.Quiet("samples")

	// Without a participant's log the past begins with the server, and the pages say so.
	alone, _ := serve(t, s.options(), "")
	get(t, alone+api, nil)
	for _, path := range []string{"", "/rounds"} {
		b.Do(chromedp.Navigate(alone + "/runs/" + stageRun + path))
		b.Wait(`/when this server began to look/.test(document.querySelector("main").innerText)`)
	}
	b.Quiet("without a log")
}

func TestPromptIsContinuedOnThePage(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2)
	o := s.options()
	checkpoints := t.TempDir()
	writeCheckpoint(t, filepath.Join(checkpoints, "step-000010"))
	o.Node = &Node{Run: stageRun, Checkpoints: checkpoints, Generate: echo}
	url, _ := serve(t, o, "")
	get(t, url+api, nil)
	b := browser.Open(t)
	b.Do(chromedp.Navigate(url + "/runs/" + stageRun + "/model"))
	b.Wait(`document.querySelector(".prompt form") !== null`)
	b.Do(chromedp.SetValue(chromedp.CSS("#prompt"), "<b>Light</b> "), chromedp.Click(chromedp.CSS(".prompt .primary")))
	b.Wait(`document.querySelector(".answer").textContent === "<b>Light</b> is 12 <i>bent</i>"`)
	b.Wait(`document.querySelector(".prompt").textContent.includes("Done.")`)
	b.Quiet("model")
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
