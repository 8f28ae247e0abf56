package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A token of a template: text between tags, or a part of a tag.
type token struct {
	kind kind
	text string // of a string literal, its value
	line int
}

type kind uint8

const (
	kindEnd   kind = iota // of the template
	kindText              // between tags
	kindOpen              // {% or {{
	kindClose             // %} or }}
	kindName
	kindString
	kindInt
	kindFloat
	kindOperator
)

// A lexer cuts a template into tokens, with trim_blocks and lstrip_blocks as transformers sets
// them: a tag takes the blanks before it in its line and the newline after it.
type lexer struct {
	rest   string
	line   int
	tokens []token
	begins bool // the rest begins a line
}

func lex(source string) ([]token, error) {
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	x := &lexer{rest: strings.TrimSuffix(source, "\n"), line: 1, begins: true}
	for x.rest != "" {
		if err := x.next(); err != nil {
			return nil, fmt.Errorf("line %d: %w", x.line, err)
		}
	}
	return append(x.tokens, token{kind: kindEnd, text: "the template's end", line: x.line}), nil
}

func (x *lexer) add(k kind, text string) {
	x.tokens = append(x.tokens, token{k, text, x.line})
}

// skip drops the first n bytes.
func (x *lexer) skip(n int) {
	x.line += strings.Count(x.rest[:n], "\n")
	x.rest = x.rest[n:]
}

// spaces returns the length of the white space at the beginning of the rest.
func (x *lexer) spaces() int {
	return len(x.rest) - len(strings.TrimLeftFunc(x.rest, unicode.IsSpace))
}

// next reads text and the tag after it.
func (x *lexer) next() error {
	at := -1
	for i := 0; i+1 < len(x.rest); i++ {
		if x.rest[i] == '{' && strings.IndexByte("{%#", x.rest[i+1]) >= 0 {
			at = i
			break
		}
	}
	if at < 0 {
		x.add(kindText, x.rest)
		x.skip(len(x.rest))
		return nil
	}
	text, what, sign := x.rest[:at], x.rest[at+1], byte(0)
	if after := x.rest[at+2:]; after != "" && (after[0] == '-' || after[0] == '+' && what != '{') {
		sign = after[0]
	}
	if sign == '-' {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	} else if sign == 0 && what != '{' {
		begin := strings.LastIndexByte(text, '\n') + 1
		if (begin > 0 || x.begins) && strings.TrimFunc(text[begin:], unicode.IsSpace) == "" {
			text = text[:begin]
		}
	}
	if text != "" {
		x.add(kindText, text)
	}
	x.skip(at + 2)
	if sign != 0 {
		x.skip(1)
	}
	if what == '#' {
		end := strings.Index(x.rest, "#}")
		if end < 0 {
			return fmt.Errorf("a comment has no end")
		}
		minus := end > 0 && x.rest[end-1] == '-'
		x.skip(end + 2)
		x.closed(minus, '%')
		return nil
	}
	x.add(kindOpen, "{"+string(what))
	return x.tag(map[byte]byte{'{': '}', '%': '%'}[what])
}

// closed drops the white space that a tag takes after it.
func (x *lexer) closed(minus bool, what byte) {
	n := 0
	if minus {
		n = x.spaces()
	} else if what == '%' && strings.HasPrefix(x.rest, "\n") {
		n = 1
	}
	x.begins = n > 0 && x.rest[n-1] == '\n'
	x.skip(n)
}

// operators, the longer ones first.
var operators = []string{"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "|", ".", ",", ":", "(", ")", "[", "]", "{", "}"}

// tag reads the inside of a tag and its end, whose first byte is end.
func (x *lexer) tag(end byte) error {
	depth := 0
	for {
		x.skip(x.spaces())
		if x.rest == "" {
			return fmt.Errorf("a tag has no end")
		}
		if depth == 0 {
			for _, sign := range []string{"-", "+", ""} {
				if strings.HasPrefix(x.rest, sign+string(end)+"}") && (sign != "+" || end == '%') {
					x.skip(len(sign) + 2)
					x.add(kindClose, string(end)+"}")
					if sign == "+" {
						x.begins = false
						return nil
					}
					x.closed(sign == "-", end)
					return nil
				}
			}
		}
		r, _ := utf8.DecodeRuneInString(x.rest)
		switch {
		case r == '_' || unicode.IsLetter(r):
			n := strings.IndexFunc(x.rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			if n < 0 {
				n = len(x.rest)
			}
			x.add(kindName, x.rest[:n])
			x.skip(n)
		case '0' <= r && r <= '9':
			x.number()
		case r == '"' || r == '\'':
			if err := x.literal(byte(r)); err != nil {
				return err
			}
		default:
			op := ""
			for _, o := range operators {
				if strings.HasPrefix(x.rest, o) {
					op = o
					break
				}
			}
			switch op {
			case "":
				return fmt.Errorf("a tag has the character %q", r)
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			}
			x.add(kindOperator, op)
			x.skip(len(op))
		}
	}
}

func (x *lexer) number() {
	digits := func(s string) int {
		return len(s) - len(strings.TrimLeft(s, "0123456789"))
	}
	n, k := digits(x.rest), kindInt
	if after := x.rest[n:]; len(after) > 1 && after[0] == '.' && digits(after[1:]) > 0 {
		n, k = n+1+digits(after[1:]), kindFloat
	}
	if after := strings.TrimLeft(x.rest[n:], "eE"); len(after) == len(x.rest)-n-1 {
		if e := digits(strings.TrimLeft(after, "+-")); e > 0 && len(after)-len(strings.TrimLeft(after, "+-")) < 2 {
			n, k = len(x.rest)-len(strings.TrimLeft(after, "+-"))+e, kindFloat
		}
	}
	x.add(k, x.rest[:n])
	x.skip(n)
}

// literal reads a string, with Python's escapes.
func (x *lexer) literal(quote byte) error {
	var b strings.Builder
	for i := 1; i < len(x.rest); i++ {
		c := x.rest[i]
		if c == quote {
			x.add(kindString, b.String())
			x.skip(i + 1)
			return nil
		}
		if c != '\\' || i+1 >= len(x.rest) {
			b.WriteByte(c)
			continue
		}
		i++
		if at := strings.IndexByte("abfnrtv\\'\"\n", x.rest[i]); at >= 0 {
			if x.rest[i] != '\n' {
				b.WriteByte("\a\b\f\n\r\t\v\\'\""[at])
			}
			continue
		}
		n, base := map[byte]int{'x': 2, 'u': 4, 'U': 8}[x.rest[i]], 16
		from := i + 1
		if n == 0 && '0' <= x.rest[i] && x.rest[i] <= '7' {
			from, base = i, 8
			for n < 3 && from+n < len(x.rest) && '0' <= x.rest[from+n] && x.rest[from+n] <= '7' {
				n++
			}
		}
		if n == 0 {
			b.WriteByte('\\')
			b.WriteByte(x.rest[i])
			continue
		}
		v, err := uint64(0), error(nil)
		if from+n <= len(x.rest) {
			v, err = strconv.ParseUint(x.rest[from:from+n], base, 32)
		}
		if from+n > len(x.rest) || err != nil || !utf8.ValidRune(rune(v)) {
			return fmt.Errorf("a string has a bad escape \\%c", x.rest[i])
		}
		b.WriteRune(rune(v))
		i = from + n - 1
	}
	return fmt.Errorf("a string has no end")
}
