//go:build amd64

package exact8

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"
)

// ofEVEX names the variable under which the tests force the kernels for AVX-VNNI.
const ofEVEX = "ENTRAIN_TEST_EVEX"

func init() {
	if os.Getenv(ofEVEX) != "" {
		forced = &avxVNNI
	}
	if near := vnni; cpu.X86.HasAVX512VNNI && near.near == nil {
		near.name, near.near = "avx512vnni, near", nearVNNI
		others = []kernel{near}
	}
}

// The kernels for AVX-VNNI give the bits of the definition. Where the processor has AVX-512 instead,
// they are built with its encoding of the same instruction; a test of the generator compares the
// other encoding with an assembler's.
func TestKernelsForAVXVNNIComputeTheDefinition(t *testing.T) {
	t.Parallel()
	if forced != nil {
		t.Skip("this is the inner run")
	}
	if !cpu.X86.HasAVX512VNNI || !cpu.X86.HasAVX512VL {
		t.Skip("this processor has no VPDPBUSD of AVX-512; products are tested with what it has")
	}
	source, err := exec.Command("go", "run", "./internal/gen", "amd64.evex").Output()
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("kernels_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	kernels, overlay := filepath.Join(t.TempDir(), "kernels.s"), filepath.Join(t.TempDir(), "overlay.json")
	text, _ := json.Marshal(map[string]any{"Replace": map[string]string{here: kernels}})
	for name, b := range map[string][]byte{kernels: source, overlay: text} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	test := exec.Command("go", "test", "-overlay", overlay, "-short", "-v", "-run", "^Test(ProductsHaveTheSameBitsOnEvery|EveryKernelComputes|ABlockThatIsNoNumber)", ".")
	test.Env = append(os.Environ(), ofEVEX+"=1")
	out, err := test.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS: Test") < 3 || !strings.Contains(string(out), "avxvnni_of_a_pool") {
		t.Errorf("%v\n%s", err, out)
	}
}
