package view

import (
	"os/exec"
	"runtime"
	"testing"
)

func TestQuotedWordsAreOneWordEach(t *testing.T) {
	for word, want := range map[string]string{
		"/srv/my-data": "/srv/my-data", "./corpus": "./corpus", "https://a.example/b": "https://a.example/b",
		"my dir": "'my dir'", "it's": `'it'\''s'`, "$HOME/`x`": "'$HOME/`x`'", "~/x": "'~/x'", "": "''", `a\b`: `'a\b'`,
	} {
		if got := quote(word, "linux"); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
		if runtime.GOOS == "windows" {
			continue
		}
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s. "+quote(word, "linux")).Output(); err != nil || string(out) != word+"." {
			t.Errorf("a shell takes %s for %q: %v", quote(word, "linux"), out, err)
		}
	}
	for word, want := range map[string]string{`C:\data`: `C:\data`, `C:\my data`: `"C:\my data"`} {
		if got := quote(word, "windows"); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
