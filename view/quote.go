package view

import (
	"runtime"
	"strings"
)

// Quote returns a word as a shell takes it for one word, to print commands that can be copied.
func Quote(word string) string { return quote(word, runtime.GOOS) }

func quote(word, goos string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-+=:,@", r) &&
			(r != '\\' || goos != "windows")
	}
	switch {
	case word != "" && !strings.ContainsFunc(word, special):
		return word
	case goos == "windows":
		return `"` + word + `"` // no path has quotes there
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
