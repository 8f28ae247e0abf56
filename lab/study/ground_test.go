package study

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plainText is a file of a text that is soon learnt.
func plainText(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&b, "Line %d of a text about nothing.\n", i)
	}
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return text
}

// What a text was prepared into goes when the comparison ends, and when it cannot begin.
func TestGroundsLeaveNothingBehind(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TMP", temporary) // the name on Windows
	g, err := newGround(t.Context(), plainText(t), learningModel, learningSequence, 3, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	if g.heldOut != 3 || len(g.start) != learningModel.Layout().Len() {
		t.Errorf("%d sequences held out, %d parameters", g.heldOut, len(g.start))
	}
	params := g.fresh()
	params[0]++
	if g.start[0] == params[0] {
		t.Error("who trains changes what others start from")
	}
	if err := g.close(); err != nil {
		t.Error(err)
	}
	if _, err := newGround(t.Context(), filepath.Join(t.TempDir(), "none"), learningModel, learningSequence, 3, 1, ""); err == nil {
		t.Error("a text that is not there is prepared")
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
