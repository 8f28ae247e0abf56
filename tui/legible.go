package tui

import (
	"io"
	"os"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Legible returns a writer for words that may come from a stranger, such as an endpoint's errors:
// what would move the cursor, change colours or turn the direction of writing becomes a question
// mark, and what is no UTF-8 a replacement character. Its Write may be called from any goroutine.
func Legible(w io.Writer) io.Writer { return &legible{to: w} }

// Shown returns Legible(w) if w is a terminal, or else w.
func Shown(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return Legible(w)
		}
	}
	return w
}

type legible struct {
	to   io.Writer
	mu   sync.Mutex
	rest []byte // the beginning of a character
}

// Write implements io.Writer.
func (l *legible) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []byte
	in := append(l.rest, b...)
	for len(in) > 0 && utf8.FullRune(in) {
		r, size := utf8.DecodeRune(in)
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			r = '?'
		}
		out, in = utf8.AppendRune(out, r), in[size:]
	}
	l.rest = append([]byte(nil), in...)
	if _, err := l.to.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
