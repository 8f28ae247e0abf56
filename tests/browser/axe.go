package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Rules for axe: all of WCAG and its best practices, or only those about colours.
const (
	axeAll     = `"wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"`
	axeColours = `"color-contrast", "link-in-text-block"`
)

// axeRun runs axe on the page.
const axeRun = `axe.run(document, { runOnly: [%s], resultTypes: ["violations"] }).then((r) => r.violations.flatMap((v) => v.nodes.map((n) =>
	v.id + " (" + v.impact + "): " + n.target.join(" ") + ": " + n.failureSummary.replace(/\s+/g, " ") + " In " + n.html.slice(0, 160))))`

// Axe is the source of axe-core, which checks the accessibility of pages
// (https://github.com/dequelabs/axe-core).
type Axe struct{ script string }

// FindAxe reads the axe.min.js that ENTRAIN_AXE names or that .ci/run has installed, or skips the
// test.
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

// Faults returns violations of WCAG 2.2, levels A and AA, and of axe's best practices.
func (a Axe) Faults(b *Tab) []string {
	b.t.Helper()
	return a.run(b, axeAll)
}

// ColourFaults returns only violations about colours.
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
