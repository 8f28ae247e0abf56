package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// screen shows the board: on a terminal as a table that is redrawn in place, elsewhere as a line every few seconds. Notes scroll by
// above the table. Plain ANSI: up, clear to the end of the screen, no full-screen mode, so that the last table stays to be read.
type screen struct {
	out   io.Writer
	width func() int // of the terminal; nil: no terminal
	drawn int        // lines of the table on the terminal
	last  time.Time
	said  string
}

// How often the board is shown.
const (
	redrawEvery = 250 * time.Millisecond
	lineEvery   = 3 * time.Second
)

// newScreen looks whether out is a terminal.
func newScreen(out io.Writer, env func(string) string) *screen {
	s := &screen{out: out}
	f, ok := out.(*os.File)
	if ok && term.IsTerminal(int(f.Fd())) && env("TERM") != "dumb" {
		s.width = func() int {
			w, _, err := term.GetSize(int(f.Fd()))
			if err != nil || w <= 0 {
				return 80
			}
			return w
		}
	}
	return s
}

// show shows the board if it is time; now says so when force is set.
func (s *screen) show(b *board, now time.Time, force bool) {
	every := redrawEvery
	if s.width == nil {
		every = lineEvery
	}
	if !force && now.Sub(s.last) < every {
		return
	}
	s.last = now
	if s.width == nil {
		if line := b.line(now); line != s.said {
			s.said = line
			fmt.Fprintln(s.out, line)
		}
		return
	}
	lines := b.lines(now, s.width())
	fmt.Fprint(s.out, s.home()+strings.Join(lines, "\n")+"\n")
	s.drawn = len(lines)
}

// note writes a line that stays.
func (s *screen) note(text string) {
	fmt.Fprint(s.out, s.home()+text+"\n")
	s.drawn, s.last = 0, time.Time{}
}

// home moves to where the table begins, and clears it.
func (s *screen) home() string {
	if s.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", s.drawn)
}
