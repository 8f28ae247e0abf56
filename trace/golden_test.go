package trace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/exact"
)

// goldenCase has sizes that no tile divides.
func goldenCase() modelCase {
	c := modelCases()[1]
	c.name, c.sequences = "golden", 2
	return c
}

// TestATraceHasOneRoot runs a program with each kernel and several workers. The golden root, in testdata, changes only when what a step is does, and
// then no two versions can be on two sides of a dispute.
func TestATraceHasOneRoot(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "golden.txt"))
	if err != nil {
		t.Fatal(err)
	}
	c := goldenCase()
	for _, kernel := range exact.Kernels() {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s %d", kernel.Name(), workers), func(t *testing.T) {
				pool := exact.NewPoolOf(workers, kernel)
				defer pool.Close()
				made, err := Run(context.Background(), pool, gameProgram(t, c), c.allSources())
				if err != nil {
					t.Fatal(err)
				}
				if got := made.Root().String(); got != strings.TrimSpace(string(want)) {
					t.Errorf("the root is %s, the golden one %s", got, want)
				}
			})
		}
	}
}

// TestTheGoldenRootIsReachedOnARM64 does the same in an emulator, with NEON and with plain Go as its compiler makes it.
func TestTheGoldenRootIsReachedOnARM64(t *testing.T) {
	if runtime.GOARCH == "arm64" {
		t.Skip("this is arm64: the other test has shown it")
	}
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		t.Skip("qemu-aarch64 is not installed (Debian's package qemu-user has it)")
	}
	binary := filepath.Join(t.TempDir(), "trace.test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building for arm64: %v\n%s", err, out)
	}
	out, err := exec.Command(emulator, binary, "-test.v", "-test.run", "^TestATraceHasOneRoot$/^(neon_3|plain_1)$").CombinedOutput()
	if err != nil || strings.Count(string(out), "    --- PASS: ") != 2 {
		t.Errorf("on arm64: %v\n%s", err, out)
	}
}
