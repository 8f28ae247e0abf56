package gpu

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/engine/vulkan/shader"
)

// matrixKernel needs devices that multiply matrices, and newer compilers and validators of SPIR-V.
const matrixKernel = "gemm8_matrix"

// compiles is set in the process that compiles for TestAMDsCompilerFusesOnlyProducts.
const compiles = "ENTRAIN_TEST_COMPILES"

// AMD's compiler makes machine code without AMD's hardware. What it fuses is what it was asked to,
// and bytes are multiplied four at a time. Mesa offers that up to some release after 22.3.
func TestAMDsCompilerFusesOnlyProducts(t *testing.T) {
	if os.Getenv(compiles) != "" {
		compileAll(t)
		return
	}
	drivers, err := filepath.Glob("/usr/share/vulkan/icd.d/radeon_icd.*.json")
	if err != nil || len(drivers) == 0 {
		t.Skip("Mesa's driver for AMD is not installed (Debian's package mesa-vulkan-drivers has it)")
	}
	for _, family := range []struct {
		name  string
		fuses bool // otherwise the proof finds that fma is rounded twice
	}{{"gfx1100", true}, {"vega10", false}} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAMDsCompilerFusesOnlyProducts$")
		cmd.Env = append(os.Environ(), compiles+"=1", "VK_ICD_FILENAMES="+drivers[0], "VK_DRIVER_FILES="+drivers[0],
			"RADV_FORCE_FAMILY="+family.name, "RADV_DEBUG=shaders,nocache")
		out, err := cmd.CombinedOutput()
		if bytes.Contains(out, []byte("no device")) {
			t.Skip("this Mesa makes no device of none")
		}
		if err != nil {
			t.Fatalf("%s: %v: %s", family.name, err, out[max(0, len(out)-1000):])
		}
		seen := 0
		for _, part := range strings.Split(string(out), "\nkernel ")[1:] {
			name, code, _ := strings.Cut(part, "\n")
			seen++
			fused, four := len(fusedOp.FindAllString(code, -1)), strings.Count(code, "v_dot4")
			if wants := name == "gemm" && family.fuses; (fused >= 256) != wants || !wants && fused > 0 {
				t.Errorf("%s: kernel %s has %d fused operations", family.name, name, fused)
			}
			if name == "gemm8_dot" && family.fuses && four == 0 {
				t.Errorf("%s: kernel %s multiplies byte by byte", family.name, name)
			}
		}
		if seen != len(shader.Names())-1 {
			t.Errorf("%s: %d kernels were compiled of %d", family.name, seen, len(shader.Names())-1)
		}
	}
}

// fusedOp matches instructions that multiply and add.
var fusedOp = regexp.MustCompile(`v_(dual_|pk_)?(fma|fmac|fmaak|fmamk|mad|mac)_(legacy_)?f(32|16)`)

// compileAll compiles all kernels, whose code the driver prints.
func compileAll(t *testing.T) {
	i, err := Open()
	if err != nil || len(i.Devices()) == 0 {
		t.Fatal("no device", err)
	}
	defer i.Close()
	d, err := i.Device(0)
	if err != nil {
		t.Fatal("no device: ", err)
	}
	for _, name := range shader.Names() {
		if name == matrixKernel {
			continue // this Mesa multiplies none
		}
		fmt.Fprintf(os.Stderr, "\nkernel %s\n", name)
		if _, err := d.NewKernel(name, shader.SPIRV(name), 0, 8, 8*8); err != nil {
			t.Error(err)
		}
	}
}
