package main

import (
	"bytes"
	"strings"
	"testing"
)

// The numbers are those of the machine's loader, which refuses a program that calls by others.
func TestMachineFunctionsAreKnownByTheirHash(t *testing.T) {
	for name, want := range map[string]uint32{"abort": 0xb6fc1a11, "sol_log_": 0x207559bd, "sol_sha256": 0x11f49d86, "sol_memcpy_": 0x717cc4a3} {
		if got := murmur3([]byte(name)); got != want {
			t.Errorf("%s has the hash %#x, want %#x", name, got, want)
		}
	}
}

func TestRewrite(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"target", `target triple = "aarch64-unknown-linux"`, `target triple = "bpfel"`},
		{"attributes", `attributes #0 = { "target-cpu"="generic" uwtable }`, `attributes #0 = { nounwind }`},
		{"long copy", `  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %a, ptr nonnull %b, i64 300, i1 false), !dbg !3`,
			`  call void @sol_memcpy_(ptr %a, ptr %b, i64 300)`},
		{"copy of any length", `  tail call void @llvm.memmove.p0.p0.i64(ptr %a, ptr %b, i64 %n, i1 false)`,
			`  call void @sol_memmove_(ptr %a, ptr %b, i64 %n)`},
		{"short copy", `  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 32, i1 false)`,
			`  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 32, i1 false)`},
		{"zeros", `  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 %n, i1 false)`, `  call void @sol_memset_(ptr %a, i64 0, i64 %n)`},
		{"any byte", `  call void @llvm.memset.p0.i64(ptr %a, i8 %v, i64 %n, i1 false)`,
			"  %sbf.wide1 = zext i8 %v to i64\n  call void @sol_memset_(ptr %a, i64 %sbf.wide1, i64 %n)"},
		{"sum", `  %3 = fadd float %1, 2.000000e+00`, "  %sbf.v1 = bitcast float %1 to i32\n  %sbf.v2 = bitcast float 2.000000e+00 to i32\n" +
			"  %sbf.v3 = call i32 @f32_add(i32 %sbf.v1, i32 %sbf.v2)\n  %3 = bitcast i32 %sbf.v3 to float"},
		{"comparison", `  %c = fcmp ult double %a, %b`, "  %sbf.v2 = bitcast double %a to i64\n  %sbf.v3 = bitcast double %b to i64\n" +
			"  %sbf.v1 = call i32 @f64_cmp(i64 %sbf.v2, i64 %sbf.v3)\n  %sbf.v1.m = and i32 %sbf.v1, 9\n  %c = icmp ne i32 %sbf.v1.m, 0"},
		{"sign", `  %n = fneg float %a`, "  %sbf.v1 = bitcast float %a to i32\n  %sbf.v2 = xor i32 %sbf.v1, -2147483648\n  %n = bitcast i32 %sbf.v2 to float"},
		{"narrower", `  %n = fptrunc double %a to float`, "  %sbf.v1 = bitcast double %a to i64\n  %sbf.v2 = call i32 @f64_to_f32(i64 %sbf.v1)\n" +
			"  %n = bitcast i32 %sbf.v2 to float"},
		{"from an integer", `  %f = uitofp nneg i32 %a to double`, "  %sbf.v1 = zext i32 %a to i64\n  %sbf.v2 = call i64 @u64_to_f64(i64 %sbf.v1)\n" +
			"  %f = bitcast i64 %sbf.v2 to double"},
		{"signed division", `  %q = sdiv i64 %a, %b`, "  %sbf.v1 = ashr i64 %a, 63\n  %sbf.v2 = xor i64 %a, %sbf.v1\n  %sbf.v3 = sub i64 %sbf.v2, %sbf.v1\n" +
			"  %sbf.v4 = ashr i64 %b, 63\n  %sbf.v5 = xor i64 %b, %sbf.v4\n  %sbf.v6 = sub i64 %sbf.v5, %sbf.v4\n" +
			"  %sbf.v7 = xor i64 %sbf.v1, %sbf.v4\n  %sbf.v8 = udiv i64 %sbf.v3, %sbf.v6\n" +
			"  %sbf.v9 = xor i64 %sbf.v8, %sbf.v7\n  %q = sub i64 %sbf.v9, %sbf.v7"},
		{"moves stay", `  %v = select i1 %c, float %a, float %b`, `  %v = select i1 %c, float %a, float %b`},
		{"trap", `  tail call void @llvm.trap()`, `  call void @abort()`},
	} {
		var out bytes.Buffer
		if err := rewrite(&out, strings.NewReader(c.in)); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(out.String(), "\ndeclare"); got != c.want {
			t.Errorf("%s: %s\nbecame %s\nwant   %s", c.name, c.in, got, c.want)
		}
	}
}

func TestUnknownOperationsOnFloatsAreRefused(t *testing.T) {
	for _, l := range []string{"  %2 = frem float %a, %b", "  %2 = fadd <2 x float> %a, %b", "  %2 = call float @llvm.maxnum.f32(float %a, float %b)"} {
		if err := rewrite(&bytes.Buffer{}, strings.NewReader(l)); err == nil {
			t.Errorf("%s became something", l)
		}
	}
}

func TestFunctionsAreDeclaredOnce(t *testing.T) {
	var out bytes.Buffer
	if err := rewrite(&out, strings.NewReader("declare void @abort()\n")); err != nil {
		t.Fatal(err)
	}
	for name := range declarations {
		if n := strings.Count(out.String(), "@"+name+"("); n != 1 {
			t.Errorf("%s is declared %d times", name, n)
		}
	}
}

// A frame is as deep as the lowest address that code reaches from the frame pointer, by a load, a store, or a pointer that it makes.
func TestDeepestFrame(t *testing.T) {
	ins := func(op, regs byte, off int16, imm int32) []byte {
		b := make([]byte, 8)
		b[0], b[1] = op, regs
		le.PutUint16(b[2:], uint16(off))
		le.PutUint32(b[4:], uint32(imm))
		return b
	}
	load, store, move, add := ins(0x79, 0xa1, -16, 0), ins(0x7b, 0x1a, -800, 0), ins(0xbf, 0xa2, 0, 0), ins(0x07, 0x02, 0, -4000)
	for _, c := range []struct {
		code []byte
		want int
	}{{load, 16}, {append(load, store...), 800}, {append(append(load[:8:8], move...), add...), 4000}, {add, 0}} {
		if got := deepest(c.code); got != c.want {
			t.Errorf("% x has a frame of %d bytes, want %d", c.code, got, c.want)
		}
	}
}
