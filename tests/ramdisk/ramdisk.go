// Package ramdisk has the temporary files of tests that import it, and of their children, in memory
// where there is much of it, so that nothing waits for disks. TMPDIR in the environment overrules
// it; benchmarks run as the product does.
package ramdisk

import (
	"os"
	"slices"
	"strings"
)

func init() {
	benchmarks := func(arg string) bool { return strings.HasPrefix(arg, "-test.bench=") && arg != "-test.bench=" }
	if dir := inMemory(); dir != "" && os.Getenv("TMPDIR") == "" && !slices.ContainsFunc(os.Args, benchmarks) {
		os.Setenv("TMPDIR", dir)
	}
}
