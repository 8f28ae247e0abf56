package exact

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
)

// emulated are the tests that compare kernels with plain Go, but for the one of products that takes plain Go too long there.
const emulated = "^(Test(RowKernels|LaneKernels|ExpInVectors|Folds|Panels|AdamW|FMA32|GemmDoes|GemmGoes|GemmWith|Peak).*|Fuzz.*)$"

// The kernel for arm64 and plain Go as its compiler makes it are equal there too, here in an emulator.
func TestKernelsAreEqualToPlainGoOnARM64(t *testing.T) {
	if runtime.GOARCH == "arm64" {
		t.Skip("this is arm64: the other tests have shown it")
	}
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		t.Skip("qemu-aarch64 is not installed (Debian's package qemu-user has it)")
	}
	binary := filepath.Join(t.TempDir(), "exact.test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building for arm64: %v\n%s", err, out)
	}
	out, err := exec.Command(emulator, binary, "-test.v", "-test.run", emulated).CombinedOutput()
	if err != nil {
		t.Fatalf("on arm64: %v\n%s", err, out)
	}
	if passed := regexp.MustCompile(`(?m)^--- PASS: `).FindAll(out, -1); len(passed) < 15 {
		t.Errorf("only %d tests passed on arm64:\n%s", len(passed), out)
	}
}
