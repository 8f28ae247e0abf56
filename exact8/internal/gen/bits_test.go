package main

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Instructions of AVX-VNNI and AMX that are written by their bits are what GNU's assembler makes of
// their text.
func TestInstructionsByTheirBitsAreWhatTheyAreCalled(t *testing.T) {
	assembler := ""
	for _, name := range []string{"x86_64-linux-gnu-as", "as"} {
		if help, err := exec.Command(name, "--help").Output(); err == nil && strings.Contains(string(help), "avx_vnni") {
			assembler = name
			break
		}
	}
	copier, err := exec.LookPath(strings.TrimSuffix(assembler, "as") + "objcopy")
	if assembler == "" || err != nil {
		t.Skip("no assembler that knows AVX-VNNI is installed (Debian's package binutils has one)")
	}
	var text, want strings.Builder
	found := regexp.MustCompile(`(?m)^\t((?:BYTE \$0x[0-9a-f]{2}; )+)// (.*)$`).FindAllStringSubmatch(files()["amd64"], -1)
	for _, m := range found {
		want.WriteString(regexp.MustCompile(`BYTE \$0x|; `).ReplaceAllString(m[1], ""))
		text.WriteString(m[2] + "\n")
	}
	for name, least := range map[string]int{"vpdpbusd": 100, "tdpbssd": 2, "tileloadd": 4, "tilestored": 2, "tilezero": 2, "ldtilecfg": 2, "tilerelease": 2} {
		if n := strings.Count(text.String(), name); n < least {
			t.Fatalf("%d instructions %s are found", n, name)
		}
	}
	if strings.Count(files()["amd64"], "\tBYTE ") != len(found) {
		t.Fatalf("%d instructions have their text beside them", len(found))
	}
	dir := t.TempDir()
	source, object, raw := filepath.Join(dir, "a.s"), filepath.Join(dir, "a.o"), filepath.Join(dir, "a.bin")
	if err := os.WriteFile(source, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(assembler, "--64", "-o", object, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(copier, "-O", "binary", "-j", ".text", object, raw).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(raw)
	if err != nil || !strings.HasPrefix(hex.EncodeToString(b), want.String()) {
		t.Errorf("the assembler makes other bits of the %d instructions, %v", len(found), err)
	}
}
