package trace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/tests/emulator"
)

// goldenCase has sizes that no tile divides, for either arithmetic.
func goldenCase(name string) modelCase {
	i := slices.IndexFunc(modelCases(), func(c modelCase) bool { return c.name == name })
	c := modelCases()[i]
	c.name, c.sequences = "golden", 2
	return c
}

// goldenRoots are the files in testdata, and the cases whose roots they have.
var goldenRoots = map[string]string{"golden.txt": "odd sizes", "golden8.txt": "8 bits, odd sizes"}

// TestATraceHasOneRoot runs a program with each kernel and several workers. The golden root, in
// testdata, changes only when what a step is does, and then no two versions can be on two sides of
// a dispute.
func TestATraceHasOneRoot(t *testing.T) {
	for file, name := range goldenRoots {
		want, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		c := goldenCase(name)
		for _, kernel := range exact.Kernels() {
			for _, workers := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s %s %d", file, kernel.Name(), workers), func(t *testing.T) {
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
}

// TestTheGoldenRootIsReachedOnARM64 does the same in an emulator, with NEON and with plain Go as
// its compiler makes it.
func TestTheGoldenRootIsReachedOnARM64(t *testing.T) {
	t.Parallel()
	out, err := emulator.ARM64(t)("^TestATraceHasOneRoot$/^(golden.txt_(neon_3|plain_1)|golden8.txt_(neon_3|plain_3))$")
	if err != nil || strings.Count(out, "    --- PASS: ") != 4 {
		t.Errorf("on arm64: %v\n%s", err, out)
	}
}
