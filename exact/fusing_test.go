package exact

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/tests/campaign"
)

// computing are the packages whose results must have the same bits everywhere.
var computing = []string{"exact", "exact8", "tensor", "llama", "optim", "codec", "codec/distro", "trace"}

// mayFuse are the functions in which fusing changes no bit, with the reason.
var mayFuse = map[string]string{
	"codec.sumSquares":            "the square of a binary32 is exact in binary64",
	"codec.Norm.func1":            "sumSquares, inlined",
	"codec/distro.(*number).log2": "an estimate for reports, which nothing computes with",
}

// fused matches the instructions that multiply and add with one rounding, on all the architectures
// below.
var fused = regexp.MustCompile(`\sV?FN?M(ADD|SUB)[0-9A-Z]*\s`)

// Compilers for these targets fuse x*y + z unless an explicit conversion stands between. What they
// made of our Go is searched for it; what the assembler made is not in their listing.
func TestTheCompilerFusesNothing(t *testing.T) {
	t.Parallel()
	const module = "github.com/entrain-network/entrain/"
	targets := [][]string{{"GOARCH=arm64"}, {"GOARCH=riscv64"}, {"GOARCH=amd64", "GOAMD64=v3"}}
	if !campaign.Whole() {
		targets = targets[:1] // each compiles the packages once more
	}
	for _, target := range targets {
		args := []string{"build", "-gcflags=-S"}
		for _, name := range computing {
			args = append(args, module+name)
		}
		build := exec.Command("go", args...)
		build.Env = append(append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0"), target...)
		listing, err := build.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%.2000s", target, err, listing)
		}
		functions, found := fusedIn(listing)
		if functions < 100 {
			t.Errorf("%v: the listing has only %d functions", target, functions)
		}
		for _, f := range found {
			name, _, _ := strings.Cut(strings.TrimPrefix(f, module), ":")
			if mayFuse[name] == "" {
				t.Errorf("%v: %s", target, strings.TrimPrefix(f, module))
			}
		}
	}
}

// fusedIn returns how many functions a compiler's listing has, and "function: instruction" for each
// fused one.
func fusedIn(listing []byte) (functions int, found []string) {
	lines := bufio.NewScanner(bytes.NewReader(listing))
	lines.Buffer(nil, 1<<20)
	name := ""
	for lines.Scan() {
		line := lines.Text()
		if before, _, ok := strings.Cut(line, " STEXT"); ok && !strings.HasPrefix(line, "\t") {
			name = before
			functions++
		} else if strings.HasPrefix(line, "\t") && (strings.Contains(line, "ADD") || strings.Contains(line, "SUB")) && fused.MatchString(line) {
			found = append(found, name+": "+strings.TrimSpace(line))
		}
	}
	return functions, found
}

func TestTheSearchForFusingFindsIt(t *testing.T) {
	const listing = "a.f STEXT size=96 args=0x18\n\t0x0000 00000 (/a.go:7)\tFMADDS\tF2, F0, F1, F0\nb.g STEXT size=1\n" +
		"\t0x001c 00028 (/b.go:9)\tVFMADD231SD\tX1, X2, X0\n\t0x0020 00032 (/b.go:9)\tFMULS F0, F1, F2\n\t0x0024 00036 (/b.go:9)\tFNMSUBD F0, F1, F2, F3\n"
	functions, found := fusedIn([]byte(listing))
	if functions != 2 || len(found) != 3 || !strings.HasPrefix(found[0], "a.f: ") || !strings.HasPrefix(found[2], "b.g: ") {
		t.Errorf("%d functions, %q", functions, found)
	}
}
