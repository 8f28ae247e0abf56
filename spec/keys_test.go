package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/codec/all"
)

// bomb returns text of about n bytes that repeats a line with a growing number.
func bomb(n int, format string) []byte {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		if strings.Contains(format, "%") {
			fmt.Fprintf(&b, format, i)
		} else {
			b.WriteString(format)
		}
	}
	return []byte(b.String())
}

// The TOML reader's errors about unknown keys take time that is quadratic in their number, and a
// stranger chooses a specification's text.
func TestManyUnknownKeysAreRefusedCheaply(t *testing.T) {
	for _, format := range []string{"k%x=1\n", "[t%x]\n", "a.", "x={"} {
		for _, size := range []int{64 << 10, 8 << 10} {
			text := bomb(size, format)
			_, err := Parse(text, all.Kinds())
			if err == nil {
				t.Fatalf("%q repeated is a specification", format)
			}
			if len(err.Error()) > 4<<10 {
				t.Errorf("%q: an error of %d bytes", format, len(err.Error()))
			}
			if allocs := testing.AllocsPerRun(1, func() { _, _ = Parse(text, all.Kinds()) }); allocs > 50_000 {
				t.Errorf("%q: %v allocations to refuse %d bytes", format, allocs, len(text))
			}
		}
	}
}

func TestUnknownKeysAreNamed(t *testing.T) {
	fold := "name = \"a\"\nSteps = 70\n"
	if s, err := Parse([]byte(fold), all.Kinds()); err != nil || s.Steps != 70 {
		t.Errorf("%q: %v", fold, err)
	}
	for text, want := range map[string]string{
		"[modl]\npreset = \"nano\"\n":              "modl",
		"[model]\npreest = \"nano\"\n":             "preest",
		"[[data.mix]]\nlocaton = \"x\"\n":          "locaton",
		string(bomb(200, "wrong%x = 1\n")):         "wrong0",
		"[resume]\nstep = 1\nstates = {a=\"b\"}\n": "",
	} {
		_, err := Parse([]byte("name = \"a\"\n"+text), all.Kinds())
		named := err != nil && strings.Contains(err.Error(), "unknown key") && strings.Contains(err.Error(), want)
		if named != (want != "") {
			t.Errorf("%q: %v, want a fault about %q", text, err, want)
		}
	}
}
