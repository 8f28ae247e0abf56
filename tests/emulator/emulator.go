// Package emulator runs a package's tests on emulated processors, in qemu, where results must have
// the same bits, and checks instructions that are written by their bits.
package emulator

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// ARM64 is Of for arm64.
func ARM64(t *testing.T) func(pattern string, flags ...string) (output string, err error) {
	t.Helper()
	return Of(t, "arm64", "qemu-aarch64")
}

// RISCV64 is Of for riscv64.
func RISCV64(t *testing.T) func(pattern string, flags ...string) (output string, err error) {
	t.Helper()
	return Of(t, "riscv64", "qemu-riscv64")
}

// Of builds the tests of the package in the working directory for an architecture. It returns a
// function that runs those that match a pattern of `go test -run`, with -v and other flags, and
// returns their output. It skips the test on that architecture and without the emulator.
func Of(t *testing.T, arch, emulator string) func(pattern string, flags ...string) (output string, err error) {
	t.Helper()
	if runtime.GOARCH == arch {
		t.Skipf("this is %s: the other tests have shown it", arch)
	}
	emulator, err := exec.LookPath(emulator)
	if err != nil {
		t.Skipf("%v (Debian's package qemu-user has it)", err)
	}
	binary := filepath.Join(t.TempDir(), arch+".test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building for %s: %v\n%s", arch, err, out)
	}
	return func(pattern string, flags ...string) (string, error) {
		out, err := exec.Command(emulator, append([]string{binary, "-test.v", "-test.run", pattern}, flags...)...).CombinedOutput()
		return string(out), err
	}
}
