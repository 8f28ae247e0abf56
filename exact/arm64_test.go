package exact

import (
	"regexp"
	"testing"

	"github.com/entrain-network/entrain/tests/campaign"
	"github.com/entrain-network/entrain/tests/emulator"
	_ "github.com/entrain-network/entrain/tests/heap"
)

// emulated are the tests that compare kernels with plain Go, but for the one of products that takes
// plain Go too long there.
const emulated = "^(Test(RowKernels|LaneKernels|ExpInVectors|Folds|Panels|AdamW|FMA32|GemmDoes|GemmGoes|GemmWith|Peak).*|Fuzz.*)$"

// emulatedSlice are those that take least.
const emulatedSlice = "^Test(RowKernels|LaneKernels|GemmGoes|GemmWith).*$"

// The kernel for arm64 and plain Go as its compiler makes it are equal there too, here in an
// emulator.
func TestKernelsAreEqualToPlainGoOnARM64(t *testing.T) {
	t.Parallel()
	tests, least := emulatedSlice, 5
	if campaign.Whole() {
		tests, least = emulated, 15
	}
	out, err := emulator.ARM64(t)(tests, "-test.short")
	if err != nil {
		t.Fatalf("on arm64: %v\n%s", err, out)
	}
	if passed := regexp.MustCompile(`(?m)^--- PASS: `).FindAllString(out, -1); len(passed) < least {
		t.Errorf("only %d tests passed on arm64:\n%s", len(passed), out)
	}
}
