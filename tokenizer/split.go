package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// The split patterns of byte-level tokenizers, without a regular expression engine: Go's has no
// lookahead, which all of them need, and a hand-written scanner is ten times as fast as an engine
// that has it. Each function returns the length of the first word of b, which is not empty; the
// patterns leave no gap between words. The Unicode tables of package unicode define letters and
// numbers.
//
// Bytes that are not UTF-8 form words like punctuation. No regular expression defines their
// treatment, because the other libraries take strings.

// class is a character class that the patterns distinguish.
type class uint8

const (
	other   class = iota
	letter        // \p{L}
	number        // \p{N}
	space         // \s, but for newlines
	newline       // \r and \n
)

// asciiClass is the class of each ASCII character, the common case.
var asciiClass = func() (t [utf8.RuneSelf]class) {
	for c := range t {
		t[c] = runeClass(rune(c))
	}
	return t
}()

func runeClass(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsSpace(r):
		return space
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	}
	return other
}

// at returns the class and the length of the character at b[i], with length 0 at the end.
func at(b []byte, i int) (class, int) {
	if i >= len(b) {
		return other, 0
	}
	if c := b[i]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	r, n := utf8.DecodeRune(b[i:])
	return runeClass(r), n
}

// run returns the end of the run of characters of a class that starts at b[i].
func run(b []byte, i int, of class) int {
	for {
		c, n := at(b, i)
		if n == 0 || c != of {
			return i
		}
		i += n
	}
}

// splitGPT2 is the pattern of GPT-2 (Radford et al. 2019, encoder.py):
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func splitGPT2(b []byte) int {
	if n := contraction(b, false); n > 0 {
		return n
	}
	i := 0
	if b[0] == ' ' {
		i = 1
	}
	if c, n := at(b, i); n > 0 && c != space && c != newline {
		return run(b, i+n, c)
	}
	return spaces(b)
}

// splitGPT4 is the pattern of GPT-4 as Llama 3 writes it; digits is 3, and 1 in Qwen's:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func splitGPT4(b []byte, digits int) int {
	if n := contraction(b, true); n > 0 {
		return n
	}
	c, n := at(b, 0)
	if c == letter {
		return run(b, n, letter)
	}
	if c == other || c == space {
		if next, m := at(b, n); next == letter {
			return run(b, n+m, letter)
		}
	}
	return rest(b, digits, "\r\n")
}

// splitO200K is the pattern of GPT-4o, with contractions and 3 digits, or Mistral's Tekken, without
// and 1. It cuts words before a capital letter that follows a small one:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
func splitO200K(b []byte, contractions bool, digits int) int {
	starts := [2]int{0, 0} // where the letters may begin, the preferred place first
	if c, n := at(b, 0); c == other || c == space {
		starts[0] = n
	}
	for _, alternative := range []func([]byte, int) int{smallEnd, capitalEnd} {
		for _, i := range starts {
			if end := alternative(b, i); end > i && contractions {
				return end + contraction(b[end:], true)
			} else if end > i {
				return end
			}
		}
	}
	return rest(b, digits, "\r\n/")
}

// upper and lower are splitO200K's two classes of letters, which overlap.
func upper(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M)
}

func lower(r rune) bool {
	return unicode.In(r, unicode.Ll, unicode.Lm, unicode.Lo, unicode.M)
}

// runOf returns the end of a run of characters that belong to a class.
func runOf(b []byte, i int, is func(rune) bool) int {
	for i < len(b) {
		r, n := utf8.DecodeRune(b[i:])
		if !is(r) {
			break
		}
		i += n
	}
	return i
}

// smallEnd returns the end of upper* lower+ from b[i] on, or i. If no lower character follows the
// upper run, the match ends with the run's last character that is also lower.
func smallEnd(b []byte, i int) int {
	upperEnd := runOf(b, i, upper)
	if end := runOf(b, upperEnd, lower); end > upperEnd {
		return end
	}
	for j := upperEnd; j > i; {
		r, n := utf8.DecodeLastRune(b[i:j])
		if lower(r) {
			return j
		}
		j -= n
	}
	return i
}

// capitalEnd returns the end of upper+ lower* from b[i] on, or i.
func capitalEnd(b []byte, i int) int {
	end := runOf(b, i, upper)
	if end == i {
		return i
	}
	return runOf(b, end, lower)
}

// rest is the end of the newer patterns, for a b that does not start with a word of letters:
// numbers up to the given count of digits, punctuation followed by the characters of tail, blank
// lines, white space.
func rest(b []byte, digits int, tail string) int {
	if c, n := at(b, 0); c == number {
		end := n
		for range digits - 1 {
			if c, n = at(b, end); n == 0 || c != number {
				break
			}
			end += n
		}
		return end
	}
	i := 0
	if b[0] == ' ' {
		i = 1
	}
	if c, n := at(b, i); n > 0 && c == other {
		end := run(b, i+n, other)
		for end < len(b) && contains(tail, b[end]) {
			end++
		}
		return end
	}
	if _, lines := spaceRun(b); lines > 0 {
		return lines
	}
	return spaces(b)
}

func contains(s string, c byte) bool {
	for i := range len(s) {
		if s[i] == c {
			return true
		}
	}
	return false
}

// spaceRun returns the ends of the white space at the front of b and of the last newline in it.
func spaceRun(b []byte) (end, lines int) {
	for {
		c, n := at(b, end)
		if n == 0 || c != space && c != newline {
			return end, lines
		}
		end += n
		if c == newline {
			lines = end
		}
	}
}

// spaces is \s+(?!\S)|\s+ : white space without its last character, which belongs to the following
// word, unless it is the only character or no word follows.
func spaces(b []byte) int {
	end, _ := spaceRun(b)
	_, last := utf8.DecodeLastRune(b[:end])
	if end == len(b) || end == last {
		return end
	}
	return end - last
}

// contraction returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the front of b, 0 if there
// is none. Case-insensitive matching is Unicode's: the long s folds to s.
func contraction(b []byte, anyCase bool) int {
	if len(b) < 2 || b[0] != '\'' {
		return 0
	}
	fold := func(i int) byte {
		switch {
		case i >= len(b):
			return 0
		case anyCase && 'A' <= b[i] && b[i] <= 'Z':
			return b[i] - 'A' + 'a'
		}
		return b[i]
	}
	switch c := fold(1); c {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if fold(2) == 'e' {
			return 3
		}
	case 'l':
		if fold(2) == 'l' {
			return 3
		}
	case "ſ"[0]:
		if anyCase && len(b) > 2 && b[2] == "ſ"[1] {
			return 3
		}
	}
	return 0
}
