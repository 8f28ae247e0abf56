// Package emulator runs a package's tests on emulated arm64, in qemu, where results must have the
// same bits.
package emulator

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// ARM64 builds the tests of the package in the working directory for arm64. It returns a function
// that runs those that match a pattern of `go test -run` and returns their output with -v. It skips
// the test on arm64 and without an emulator.
func ARM64(t *testing.T) func(pattern string) (output string, err error) {
	t.Helper()
	if runtime.GOARCH == "arm64" {
		t.Skip("this is arm64: the other tests have shown it")
	}
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		t.Skip("qemu-aarch64 is not installed (Debian's package qemu-user has it)")
	}
	binary := filepath.Join(t.TempDir(), "arm64.test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building for arm64: %v\n%s", err, out)
	}
	return func(pattern string) (string, error) {
		out, err := exec.Command(emulator, binary, "-test.v", "-test.run", pattern).CombinedOutput()
		return string(out), err
	}
}
