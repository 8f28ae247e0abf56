package tokenizer

import (
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that is matched in the text before the text is cut into words.
type addedToken struct {
	id      uint32
	content string
	special bool
	late    bool // matched in the text that the others leave: "normalized" in the files

	// Conditions on the token's surroundings: whole words only, and whether it absorbs white space
	// before and after it.
	singleWord, lstrip, rstrip bool
}

// addedTokens are a tokenizer's added tokens.
type addedTokens struct {
	list []addedToken // in the order of their contents
	// whether one of a kind begins with a byte: [0] those that are not special, [1] all
	first [2][256]bool
}

func newAddedTokens(list []addedToken, n normalizer) addedTokens {
	a := addedTokens{list: slices.Clone(list)}
	for i := range a.list {
		if t := &a.list[i]; t.late {
			t.content = string(n.apply([]byte(t.content)))
		}
	}
	sort.SliceStable(a.list, func(i, j int) bool { return a.list[i].content < a.list[j].content })
	for _, t := range a.list {
		if !t.special {
			a.first[0][t.content[0]] = true
		}
		a.first[1][t.content[0]] = true
	}
	return a
}

// An encoding appends the ids of a part of a text, which is its beginning if atFront is set.
type encoding func(dst []uint32, text []byte, atFront bool) []uint32

// split appends the ids of text: the added tokens in it, and the result of encode for the text
// between them, normalized. Special tokens are recognized where special allows it, and nowhere if
// it is nil. Those that are matched late have no place in the text: only everywhere allows them.
// Once dst has more than most ids, the rest of the text is left out.
func (a *addedTokens) split(dst []uint32, text []byte, special func(at int) bool, n normalizer, most int, encode encoding) []uint32 {
	late := special
	if special != nil && !special(-1) {
		late = nil
	}
	return a.pass(dst, text, special, false, most, func(dst []uint32, text []byte, outer bool) []uint32 {
		return a.pass(dst, n.apply(text), late, true, most, func(dst []uint32, text []byte, inner bool) []uint32 {
			return encode(dst, text, outer && inner)
		})
	})
}

// pass matches one kind of added tokens.
func (a *addedTokens) pass(dst []uint32, text []byte, special func(at int) bool, late bool, most int, encode encoding) []uint32 {
	first := &a.first[0]
	if special != nil {
		first = &a.first[1]
	}
	done := 0 // bytes of text that have ids
	for i := 0; i < len(text) && len(dst) <= most; {
		if !first[text[i]] {
			i++
			continue
		}
		t := a.find(text, i, special != nil && special(i), late)
		if t == nil {
			i++
			continue
		}
		from, to := i, i+len(t.content)
		i = to
		if t.singleWord && (endsInWord(text[:from]) || beginsInWord(text[to:])) {
			continue
		}
		if t.lstrip {
			from = max(done, from-blankAtEnd(text[:from]))
		}
		if t.rstrip {
			// As in the library, a blank token may match again in the space that this one absorbed.
			n, _ := spaceRun(text[to:])
			to += n
		}
		if done < from {
			dst = encode(dst, text[done:from], done == 0)
		}
		dst = append(dst, t.id)
		done = to
	}
	if done < len(text) && len(dst) <= most {
		dst = encode(dst, text[done:], done == 0)
	}
	return dst
}

// find returns the longest token of a kind at text[i], or nil.
func (a *addedTokens) find(text []byte, i int, special, late bool) *addedToken {
	return longestAt(a.list, text[i:], func(t *addedToken) bool { return t.late == late && (special || !t.special) })
}

// longestAt returns the longest token of an ordered list with which text begins and that is wanted,
// or nil. Vocabularies have hundreds that begin alike.
func longestAt[T string | []byte](list []addedToken, text T, wanted func(*addedToken) bool) (found *addedToken) {
	for n := 0; len(list) > 0; n++ { // those that begin with text[:n]
		for first := true; len(list) > 0 && len(list[0].content) == n; list = list[1:] {
			if first && wanted(&list[0]) {
				found, first = &list[0], false
			}
		}
		if n == len(text) {
			break
		}
		c := text[n]
		list = list[sort.Search(len(list), func(i int) bool { return list[i].content[n] >= c }):]
		list = list[:sort.Search(len(list), func(i int) bool { return list[i].content[n] > c })]
	}
	return found
}

// blankAtEnd returns the length of the white space at the end of b.
func blankAtEnd(b []byte) int {
	n := 0
	for n < len(b) {
		r, size := utf8.DecodeLastRune(b[:len(b)-n])
		if !unicode.IsSpace(r) {
			break
		}
		n += size
	}
	return n
}

func endsInWord(b []byte) bool {
	r, n := utf8.DecodeLastRune(b)
	return n > 0 && inWord(r)
}

func beginsInWord(b []byte) bool {
	r, n := utf8.DecodeRune(b)
	return n > 0 && inWord(r)
}

// inWord is \w of Unicode's regular expressions (UTS 18, Annex C).
func inWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
