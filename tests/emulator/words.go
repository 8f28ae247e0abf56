package emulator

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// assemblers are programs that turn the first of two files, in Arm's syntax, into the second.
var assemblers = [][]string{
	{"aarch64-linux-gnu-as", "-march=armv8.2-a+dotprod+i8mm", "-o"},
	{"llvm-mc", "--triple=aarch64", "--mattr=+dotprod,+i8mm", "--filetype=obj", "-o"},
}

// encodedWord is an instruction written by its bits, with what it is called.
var encodedWord = regexp.MustCompile(`(?m)^\tWORD \$0x([0-9a-f]{8}) // (.+)$`)

// CheckWords checks that an assembler that is not ours makes the same bits of the names of all
// instructions for arm64 that source, in the syntax of Go's assembler, has by their bits. It fails
// the test unless these are of want kinds and at least least in all, and skips it without an
// assembler.
func CheckWords(t *testing.T, source string, want, least int) {
	t.Helper()
	texts := map[string]string{} // bits by what they are called
	for _, found := range encodedWord.FindAllStringSubmatch(source, -1) {
		if old := texts[found[2]]; old != "" && old != found[1] {
			t.Errorf("%s is both %s and %s", found[2], old, found[1])
		}
		texts[found[2]] = found[1]
	}
	kinds := map[string]bool{}
	var names []string
	for name := range texts {
		names = append(names, name)
		kinds[strings.Fields(name)[0]] = true
	}
	if len(kinds) != want || len(texts) < least {
		t.Fatalf("%d instructions are written by their bits, of %d kinds, want %d: %v", len(texts), len(kinds), want, kinds)
	}
	ran := false
	for _, assembler := range assemblers {
		if _, err := exec.LookPath(assembler[0]); err != nil {
			continue
		}
		ran = true
		for i, bits := range assembled(t, assembler, names) {
			if got := fmt.Sprintf("%08x", bits); got != texts[names[i]] {
				t.Errorf("%s is %s to %s, and %s here", names[i], got, assembler[0], texts[names[i]])
			}
		}
	}
	if !ran {
		t.Skip("no assembler for arm64 is installed (Debian's package binutils-aarch64-linux-gnu has one, llvm another)")
	}
}

// assembled returns what an assembler makes of instructions, one word each.
func assembled(t *testing.T, assembler, instructions []string) []uint32 {
	t.Helper()
	source, object := filepath.Join(t.TempDir(), "a.s"), filepath.Join(t.TempDir(), "a.o")
	if err := os.WriteFile(source, []byte(strings.Join(instructions, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(append([]string{}, assembler[1:]...), object, source)
	if out, err := exec.Command(assembler[0], args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", assembler[0], err, out)
	}
	file, err := elf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	code, err := file.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	if len(code) != 4*len(instructions) {
		t.Fatalf("%s made %d bytes of %d instructions", assembler[0], len(code), len(instructions))
	}
	words := make([]uint32, len(instructions))
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	return words
}
