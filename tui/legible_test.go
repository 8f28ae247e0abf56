package tui

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestLegible(t *testing.T) {
	var b strings.Builder
	w := Legible(&b)
	text := "wörter 漢\n\tof \x1b]52;c;aGk=\x07\x1b[2K\rstrangers \u202eback \u0085 \x9b1m"
	for i := range len(text) { // characters are cut in two
		if n, err := fmt.Fprint(w, text[i:i+1]); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got, want := b.String(), "wörter 漢\n\tof ?]52;c;aGk=??[2K?strangers ?back ? \uFFFD1m"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Shown(f) != f || Shown(&b) != &b {
		t.Error("what is no terminal is changed")
	}
}
