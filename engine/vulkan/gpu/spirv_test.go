package gpu

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/entrain-network/entrain/engine/vulkan/shader"
)

func words(b []byte) []uint32 {
	w := make([]uint32, len(b)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

// each calls f with every instruction.
func each(code []uint32, f func(op uint32, inst []uint32)) {
	for i := 5; i < len(code); i += int(code[i] >> 16) {
		f(code[i]&0xffff, code[i:i+int(code[i]>>16)])
	}
}

func TestAllArithmeticIsDecorated(t *testing.T) {
	for _, name := range shader.Names() {
		for _, m := range []FloatModes{{}, {DenormPreserve: true, SignedZeroInfNan: true, RoundToEven: true}, {CorrectFMA: true, SignedZeroInfNan: true}} {
			code, err := withModes(words(shader.SPIRV(name)), m)
			if err != nil {
				t.Fatal(err)
			}
			decorated, fma, glsl := map[uint32]bool{}, 0, 0
			each(code, func(op uint32, inst []uint32) {
				if op == opDecorate && inst[2] == decorationNoContraction {
					if decorated[inst[1]] {
						t.Errorf("%s: %d is decorated twice", name, inst[1])
					}
					decorated[inst[1]] = true
				}
			})
			each(code, func(op uint32, inst []uint32) {
				switch {
				case op == opFmaKHR:
					fma++
				case op == opExtInst && inst[4] == glslFma:
					glsl++
					fallthrough
				case op == opFAdd, op == opFSub, op == opFMul, op == opFDiv, op == opFNegate:
					if !decorated[inst[2]] {
						t.Errorf("%s: operation %d is not decorated", name, inst[2])
					}
				}
			})
			if m.CorrectFMA && glsl > 0 || !m.CorrectFMA && fma > 0 {
				t.Errorf("%s: %d of OpFmaKHR, %d of GLSL's fma", name, fma, glsl)
			}
			validate(t, name, m, code)
		}
	}
}

// validate passes a module to spirv-val, which knows SPV_KHR_fma only since 2025, and matrices since 2023.
func validate(t *testing.T, name string, m FloatModes, code []uint32) {
	t.Helper()
	if m.CorrectFMA || name == matrixKernel {
		return
	}
	validator, err := exec.LookPath("spirv-val")
	if err != nil {
		t.Logf("%s is not validated: spirv-val is not installed (Debian's package spirv-tools has it)", name)
		return
	}
	path := filepath.Join(t.TempDir(), "module.spv")
	b := make([]byte, 4*len(code))
	for i, w := range code {
		binary.LittleEndian.PutUint32(b[4*i:], w)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(validator, "--target-env", "vulkan1.2", "--scalar-block-layout", path).CombinedOutput(); err != nil {
		t.Errorf("%s, %+v: %s", name, m, out)
	}
}

func TestWhatIsNoSPIRVIsRefused(t *testing.T) {
	for _, code := range [][]uint32{nil, {1, 2, 3, 4, 5}, {spirvMagic, 0, 0, 0, 0, 0}, {spirvMagic, 0, 0, 0, 0, 9 << 16}} {
		if _, err := withModes(code, FloatModes{}); err == nil {
			t.Errorf("%v was accepted", code)
		}
	}
}
