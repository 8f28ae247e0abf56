package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Guard is a character that EncodeGuarded leaves out: in front of the spelling of a special token
// it makes it ordinary text. No text has it, for Unicode keeps it free.
const Guard = '\uFDD0'

// SpecialAt returns the length of the special token that text begins with, or 0.
func SpecialAt(t Tokenizer, text string) int {
	bpe, ok := t.(*BPE)
	if !ok {
		return 0
	}
	a := longestAt(bpe.added.list, text, func(a *addedToken) bool { return a.special })
	if a == nil {
		return 0
	}
	return len(a.content)
}

// Guarded returns text with a Guard in front of all that spells a special token of t.
func Guarded(t Tokenizer, text string) string {
	text = strings.ReplaceAll(text, string(Guard), "")
	bpe, ok := t.(*BPE)
	if !ok {
		return text
	}
	var b strings.Builder
	done := 0
	for i := range len(text) {
		if bpe.added.first[1][text[i]] && SpecialAt(t, text[i:]) > 0 {
			b.WriteString(text[done:i])
			b.WriteRune(Guard)
			done = i
		}
	}
	b.WriteString(text[done:])
	return b.String()
}

// EncodeBounded appends the ids of text as t.Encode does, and reports whether dst then has at most
// the given number. If it would have more, the ids are no use, and cost about as much as that
// number.
func EncodeBounded(t Tokenizer, dst []uint32, text string, most int) (ids []uint32, ok bool) {
	switch t := t.(type) {
	case *BPE:
		return t.encode(dst, []byte(text), nil, most)
	case Bytes:
		if len(dst)+len(text) > most {
			return dst, false
		}
	}
	dst = t.Encode(dst, []byte(text))
	return dst, len(dst) <= most
}

// EncodeGuarded appends the ids of text like EncodeBounded. The text spells special tokens, but for
// those with a Guard.
func EncodeGuarded(t Tokenizer, dst []uint32, text string, most int) (ids []uint32, ok bool) {
	bpe, ok := t.(*BPE)
	if !ok {
		return EncodeBounded(t, dst, strings.ReplaceAll(text, string(Guard), ""), most)
	}
	guarded := make(map[int]bool)
	plain := make([]byte, 0, len(text))
	for {
		i := strings.IndexRune(text, Guard)
		if i < 0 {
			break
		}
		plain = append(plain, text[:i]...)
		guarded[len(plain)] = true
		text = text[i+utf8.RuneLen(Guard):]
	}
	plain = append(plain, text...)
	if len(guarded) == 0 {
		return bpe.encode(dst, plain, everywhere, most)
	}
	return bpe.encode(dst, plain, func(at int) bool { return at >= 0 && !guarded[at] }, most)
}
