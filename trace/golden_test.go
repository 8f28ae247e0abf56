package trace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tests/emulator"
)

// goldenCase has sizes that no tile divides.
func goldenCase() modelCase {
	c := modelCases()[1]
	c.name, c.sequences = "golden", 2
	return c
}

// TestATraceHasOneRoot runs a program with each kernel and several workers. The golden root, in
// testdata, changes only when what a step is does, and then no two versions can be on two sides of
// a dispute.
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

// TestTheGoldenRootIsReachedOnARM64 does the same in an emulator, with NEON and with plain Go as
// its compiler makes it.
func TestTheGoldenRootIsReachedOnARM64(t *testing.T) {
	out, err := emulator.ARM64(t)("^TestATraceHasOneRoot$/^(neon_3|plain_1)$")
	if err != nil || strings.Count(out, "    --- PASS: ") != 2 {
		t.Errorf("on arm64: %v\n%s", err, out)
	}
}
