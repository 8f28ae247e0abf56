package exact8

import (
	"regexp"
	"testing"

	"github.com/entrain-network/entrain/tests/campaign"
	"github.com/entrain-network/entrain/tests/emulator"
)

// The kernel for arm64 gives the bits of the definition at every shape, here in an emulator.
func TestKernelsComputeTheDefinitionOnARM64(t *testing.T) {
	t.Parallel()
	if !campaign.Whole() {
		emulated(t, emulator.ARM64(t), "ProductsHaveTheSameBitsOnEvery|AProductOfOneBlock", 2)
		return
	}
	emulated(t, emulator.ARM64(t), "ProductsHaveTheSameBitsOnEvery|EveryKernelComputes|AProductOfOneBlock", 3)
}

// Products have the same bits on riscv64, where all is plain Go.
func TestProductsHaveTheSameBitsOnRISCV64(t *testing.T) {
	t.Parallel()
	emulated(t, emulator.RISCV64(t), "ProductsHaveTheSameBitsOnEvery|AProductOfOneBlock", 2)
}

func emulated(t *testing.T, run func(pattern string, flags ...string) (string, error), tests string, want int) {
	t.Helper()
	out, err := run("^Test("+tests+")", "-test.short")
	if passed := regexp.MustCompile(`(?m)^--- PASS: `).FindAllString(out, -1); err != nil || len(passed) != want {
		t.Errorf("%d tests passed, want %d: %v\n%s", len(passed), want, err, out)
	}
}
