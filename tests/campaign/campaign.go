// Package campaign holds back what tests do beyond a slice: the cases that show again, on more
// machines, with more members or over more processes, what a slice shows within seconds. Without
// them go test ./... is short enough to run after each change. ENTRAIN_TESTS=all go test ./... runs
// them, and so does .ci/run.
package campaign

import (
	"os"
	"testing"
)

// Whole reports whether tests are to do all that they can.
func Whole() bool { return os.Getenv("ENTRAIN_TESTS") == "all" && !testing.Short() }

// Only skips a test that belongs to the campaign alone, unless all run.
func Only(t testing.TB) {
	t.Helper()
	if !Whole() {
		t.Skip("part of the campaign: ENTRAIN_TESTS=all go test runs it, as .ci/run does")
	}
}
