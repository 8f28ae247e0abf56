package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The rules that axe is asked for: all of WCAG and its own practices, or those that depend on colours.
const (
	axeAll     = `"wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"`
	axeColours = `"color-contrast", "link-in-text-block"`
)

// axeRun has axe look at the page as it is.
const axeRun = `axe.run(document, { runOnly: [%s], resultTypes: ["violations"] }).then((r) => r.violations.flatMap((v) => v.nodes.map((n) =>
	v.id + " (" + v.impact + "): " + n.target.join(" ") + ": " + n.failureSummary.replace(/\s+/g, " ") + " In " + n.html.slice(0, 160))))`

// Axe is axe-core, which finds what keeps people with disabilities from using a page (https://github.com/dequelabs/axe-core).
type Axe struct{ script string }

// FindAxe finds the axe.min.js that ENTRAIN_AXE names, or that .ci/run has installed; or skips the test.
func FindAxe(t testing.TB) Axe {
	t.Helper()
	path := os.Getenv("ENTRAIN_AXE")
	if path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip("no cache directory in which axe could be: ", err)
		}
		path = filepath.Join(cache, "entrain-ci", "axe", "node_modules", "axe-core", "axe.min.js")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("no axe here: %v; npm install --prefix DIR axe-core, and name DIR/node_modules/axe-core/axe.min.js with ENTRAIN_AXE", err)
	}
	return Axe{script: string(b)}
}

// Faults are what axe finds against the rules of WCAG 2.2, levels A and AA, and its own best practices.
func (a Axe) Faults(b *Tab) []string {
	b.t.Helper()
	return a.run(b, axeAll)
}

// ColourFaults are those of them that depend on colours.
func (a Axe) ColourFaults(b *Tab) []string {
	b.t.Helper()
	return a.run(b, axeColours)
}

func (a Axe) run(b *Tab, rules string) []string {
	b.t.Helper()
	if !Value[bool](b, "'axe' in window") {
		Value[any](b, a.script+"; null")
	}
	return Value[[]string](b, fmt.Sprintf(axeRun, rules))
}
