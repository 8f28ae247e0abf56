package llama

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/tests/emulator"
	_ "github.com/entrain-network/entrain/tests/heap"
)

// The golden hash is reached on arm64 too, by NEON and by plain Go as its compiler makes it, here
// in an emulator.
func TestTheGoldenHashIsReachedOnARM64(t *testing.T) {
	t.Parallel()
	run := emulator.ARM64(t)
	for _, which := range []string{"tied/neon/2", "small/neon/4", "small/plain/2", "exact8-small/neon/1", "heads-small/neon/2", "window-small/neon/1"} {
		const test = "TestTwentyStepsReachTheGoldenHash"
		pattern := "^" + test + "$/^" + strings.ReplaceAll(which, "/", "$/^") + "$"
		out, err := run(pattern)
		if err != nil || !strings.Contains(out, "--- PASS: "+test+"/"+which) {
			t.Errorf("%s on arm64: %v\n%s", which, err, out)
		}
	}
}
