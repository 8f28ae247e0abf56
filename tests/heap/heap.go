// Package heap has tests of packages that import it, and their children, collect garbage when the
// heap is five times what was live, not twice: that takes a seventh less processor time, and memory
// that they have. GOGC in the environment overrules it.
package heap

import (
	"os"
	"runtime/debug"
	"strconv"
)

// percent is what GOGC is set to.
const percent = 400

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
		os.Setenv("GOGC", strconv.Itoa(percent))
	}
}
