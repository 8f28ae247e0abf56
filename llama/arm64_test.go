package llama

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/tests/campaign"
	"github.com/entrain-network/entrain/tests/emulator"
	_ "github.com/entrain-network/entrain/tests/heap"
)

// The golden hash is reached on arm64 too, by NEON and by plain Go as its compiler makes it, here
// in an emulator.
func TestTheGoldenHashIsReachedOnARM64(t *testing.T) {
	t.Parallel()
	run := emulator.ARM64(t)
	cases := []string{"small/neon/4", "exact8-small/neon/1"}
	if campaign.Whole() {
		cases = append(cases, "tied/neon/2", "small/plain/2", "heads-small/neon/2", "window-small/neon/1")
	}
	for _, which := range cases {
		const test = "TestTwentyStepsReachTheGoldenHash"
		pattern := "^" + test + "$/^" + strings.ReplaceAll(which, "/", "$/^") + "$"
		out, err := run(pattern)
		if err != nil || !strings.Contains(out, "--- PASS: "+test+"/"+which) {
			t.Errorf("%s on arm64: %v\n%s", which, err, out)
		}
	}
}
