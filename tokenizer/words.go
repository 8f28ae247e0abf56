package tokenizer

// pattern is a known way to cut text into words.
type pattern uint8

const (
	uncut pattern = iota // the whole text is one word
	gpt2
	gpt4
	gpt4Digit // gpt4 with each digit a word: Qwen 2
	o200k
	tekken
)

// The spellings of the patterns in tokenizer.json. Since version 0.9, tiktoken uses possessive
// quantifiers. The tokenizers library interprets these differently ({1,3}+ repeats there, and $
// matches at the end of any line). No tokenizer.json is known to use them.
var patterns = []struct {
	regex   string
	pattern pattern
}{
	{`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`, gpt2},
	{`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`, gpt4},
	{`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`, gpt4Digit},
	{`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`, o200k},
	{`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` +
		`|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`, tekken},
}

// digits is how a step before the pattern treats numbers.
type digits uint8

const (
	digitsStay   digits = iota
	digitsRuns          // separate runs of digits
	digitsSingle        // separate each digit
)

// splitter cuts text into words.
type splitter struct {
	pattern pattern
	digits  digits
}

// stretch returns the length of the front of b, which is not empty, that is cut independently: all
// of b, or up to the next change between digits and other text.
func (s splitter) stretch(b []byte) int {
	if s.digits == digitsStay {
		return len(b)
	}
	c, n := at(b, 0)
	if c == number {
		if s.digits == digitsSingle {
			return n
		}
		return run(b, n, number)
	}
	for n < len(b) {
		c, m := at(b, n)
		if c == number {
			break
		}
		n += m
	}
	return n
}

// first returns the length of the first word of a stretch, which is not empty.
func (s splitter) first(b []byte) int {
	switch s.pattern {
	case gpt2:
		return splitGPT2(b)
	case gpt4:
		return splitGPT4(b, 3)
	case gpt4Digit:
		return splitGPT4(b, 1)
	case o200k:
		return splitO200K(b, true, 3)
	case tekken:
		return splitO200K(b, false, 1)
	}
	return len(b)
}

// each calls do for each word of text.
func (s splitter) each(text []byte, do func(word []byte)) {
	for len(text) > 0 {
		n := s.stretch(text)
		part := text[:n]
		text = text[n:]
		for len(part) > 0 {
			n := s.first(part)
			do(part[:n])
			part = part[n:]
		}
	}
}
