package exact8

import (
	"strings"
	"testing"

	"github.com/entrain-network/entrain/tests/emulator"
)

// Products have the same bits on arm64, here in an emulator.
func TestProductsHaveTheSameBitsOnARM64(t *testing.T) {
	const test = "TestProductsHaveTheSameBitsOnEveryMachine"
	if out, err := emulator.ARM64(t)("^" + test + "$"); err != nil || !strings.Contains(out, "--- PASS: "+test) {
		t.Errorf("on arm64: %v\n%s", err, out)
	}
}
