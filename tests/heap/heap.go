// Package heap has tests of packages that import it, and their children, collect garbage when the
// heap is five times what was live, not twice: that takes a seventh less processor time, and memory
// that they have. GOGC in the environment overrules it; benchmarks collect as the product does.
package heap

import (
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// percent is what GOGC is set to.
const percent = 400

func init() {
	benchmarks := func(arg string) bool { return strings.HasPrefix(arg, "-test.bench=") && arg != "-test.bench=" }
	if os.Getenv("GOGC") == "" && !slices.ContainsFunc(os.Args, benchmarks) {
		debug.SetGCPercent(percent)
		os.Setenv("GOGC", strconv.Itoa(percent))
	}
}
