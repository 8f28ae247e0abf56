package tokenizer

import (
	"fmt"
	"math"
	"slices"

	"github.com/entrain-network/entrain/wire"
)

// BPE is a byte pair encoding (Sennrich et al. 2016), read from a tokenizer.json: of bytes (Radford
// et al. 2019), or of characters in SentencePiece's manner (Kudo and Richardson 2018; see
// sentence). A pattern cuts text into words, and each word starts as single bytes or characters.
// Repeatedly, the two neighbours whose merge comes first in the list of merges become one token,
// the leftmost such pair first, until no pair is in the list.
//
// Ids equal the ids of Hugging Face's tokenizers library for the same file without its
// post-processor, which only adds tokens at the ends.
type BPE struct {
	json  []byte
	hash  wire.Hash
	end   uint32
	words splitter
	whole map[string]uint32 // words that become one token
	bytes [256]uint32       // the tokens of single bytes
	pairs pairs
	text  [][]byte // of each token; nil for an id that no token has
	added addedTokens
	begin *uint32 // the token in front of every text, nil if there is none

	longest int // bytes of a word that one token stands for, at most

	normal   normalizer
	sentence *sentence // nil if tokens spell bytes
	spaces   bool      // a Metaspace replaces spaces by blanks

	idsMax int // ids are below it
}

// Name returns "bpe-" and the number of tokens.
func (t *BPE) Name() string { return fmt.Sprintf("bpe-%d", len(t.text)) }

// Hash returns the SHA-256 of the tokenizer.json that t was read from.
func (t *BPE) Hash() wire.Hash { return t.hash }

// Vocab returns the largest id plus one.
func (t *BPE) Vocab() uint32 { return uint32(len(t.text)) }

// End returns the special token that ends a document: the first of endTokens that the file has.
func (t *BPE) End() uint32 { return t.end }

// JSON returns the file that t was read from.
func (t *BPE) JSON() []byte { return slices.Clone(t.json) }

// Encode appends the ids of text. The spelling of a special token in text is ordinary text, so that
// no document can end another or pose as a system prompt. The tokenizers library does the same with
// encode_special_tokens set. Added tokens that are not special are matched.
func (t *BPE) Encode(dst []uint32, text []byte) []uint32 {
	dst, _ = t.encode(dst, text, nil, math.MaxInt)
	return dst
}

// EncodeSpecial appends the ids of text, and recognizes the spellings of special tokens, for
// prompts by the user of the model.
func (t *BPE) EncodeSpecial(dst []uint32, text []byte) []uint32 {
	dst, _ = t.encode(dst, text, everywhere, math.MaxInt)
	return dst
}

// everywhere lets special tokens be recognized wherever they are.
func everywhere(int) bool { return true }

// encode appends the ids of text, and reports whether dst then has at most the given number. If it
// would have more, no further words are merged.
func (t *BPE) encode(dst []uint32, text []byte, special func(at int) bool, most int) (ids []uint32, ok bool) {
	var m merger
	over := false
	add := func(dst []uint32, word []byte) []uint32 {
		if over = over || len(dst)+len(word)/t.longest > most; over {
			return dst
		}
		return t.appendWord(dst, word, &m)
	}
	dst = t.added.split(dst, text, special, t.normal, most, func(dst []uint32, text []byte, atFront bool) []uint32 {
		if t.sentence != nil {
			return t.sentence.encode(t, dst, text, atFront, add)
		}
		t.words.each(text, func(word []byte) { dst = add(dst, word) })
		return dst
	})
	return dst, !over && len(dst) <= most
}

// Decode appends the text of ids, with special tokens spelled out.
func (t *BPE) Decode(dst []byte, ids []uint32) ([]byte, error) {
	for i, id := range ids {
		if uint64(id) >= uint64(len(t.text)) || t.text[id] == nil {
			return dst, fmt.Errorf("token %d is %d, which tokenizer %q does not have", i, id, t.Name())
		}
		dst = append(dst, t.text[id]...)
	}
	return dst, nil
}

// TokenText returns the text of one token, nil if there is no such token. The slice must not be
// changed.
func (t *BPE) TokenText(id uint32) []byte {
	if uint64(id) >= uint64(len(t.text)) {
		return nil
	}
	return t.text[id]
}

// appendWord appends the ids of a word.
func (t *BPE) appendWord(dst []uint32, word []byte, m *merger) []uint32 {
	if id, ok := t.whole[string(word)]; ok {
		return append(dst, id)
	}
	if len(word) <= shortWord {
		return m.short(t, dst, word)
	}
	return m.long(t, dst, word)
}

// shortWord is the length up to which examining all pairs after each merge is faster than keeping a
// heap.
const shortWord = 40

// merger is the working memory of merges.
type merger struct {
	id    [shortWord]uint32
	merge [shortWord]uint64 // of id i and the next; noMerge if there is none

	start   []uint32
	symbols []symbol
	heap    []candidate
}

// short merges by repeated search for the first merge.
func (m *merger) short(t *BPE, dst []uint32, word []byte) []uint32 {
	n := len(t.symbols(m.id[:0], word))
	for i := range n - 1 {
		m.merge[i] = t.pairs.find(m.id[i], m.id[i+1])
	}
	for n > 1 {
		best := 0
		for i := 1; i < n-1; i++ {
			if m.merge[i] < m.merge[best] {
				best = i
			}
		}
		if m.merge[best] == noMerge {
			break
		}
		m.id[best] = mergedID(m.merge[best])
		copy(m.id[best+1:n-1], m.id[best+2:n])
		copy(m.merge[best+1:n-1], m.merge[best+2:n])
		n--
		if best > 0 {
			m.merge[best-1] = t.pairs.find(m.id[best-1], m.id[best])
		}
		if best < n-1 {
			m.merge[best] = t.pairs.find(m.id[best], m.id[best+1])
		}
	}
	return append(dst, m.id[:n]...)
}

// symbol is a token of a long word in a list.
type symbol struct {
	id         uint32
	prev, next int32 // -1 at the ends
	dead       bool  // merged into the one before it
}

// candidate is a merge that may be possible at a symbol.
type candidate struct {
	merge uint64
	at    int32
}

// before orders candidates: by merge, from left to right.
func (c candidate) before(o candidate) bool {
	return c.merge < o.merge || c.merge == o.merge && c.at < o.at
}

// long merges with a heap, in n log n for a word of n bytes: a text can be one word of a megabyte.
func (m *merger) long(t *BPE, dst []uint32, word []byte) []uint32 {
	m.symbols, m.heap, m.start = m.symbols[:0], m.heap[:0], t.symbols(m.start[:0], word)
	for i, id := range m.start {
		m.symbols = append(m.symbols, symbol{id: id, prev: int32(i) - 1, next: int32(i) + 1})
	}
	m.symbols[len(m.symbols)-1].next = -1
	for i := range m.symbols {
		m.offer(t, int32(i))
	}
	for len(m.heap) > 0 {
		c := m.pop()
		left := &m.symbols[c.at]
		if left.dead || left.next < 0 || t.pairs.find(left.id, m.symbols[left.next].id) != c.merge {
			continue // one of the two has since merged with another
		}
		right := &m.symbols[left.next]
		left.id, left.next, right.dead = mergedID(c.merge), right.next, true
		if left.next >= 0 {
			m.symbols[left.next].prev = c.at
		}
		m.offer(t, left.prev)
		m.offer(t, c.at)
	}
	for i := int32(0); i >= 0; i = m.symbols[i].next {
		dst = append(dst, m.symbols[i].id)
	}
	return dst
}

// offer puts the merge of a symbol and the next on the heap, if there is one.
func (m *merger) offer(t *BPE, at int32) {
	if at < 0 || m.symbols[at].next < 0 {
		return
	}
	merge := t.pairs.find(m.symbols[at].id, m.symbols[m.symbols[at].next].id)
	if merge == noMerge {
		return
	}
	m.heap = append(m.heap, candidate{merge, at})
	for i := len(m.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !m.heap[i].before(m.heap[parent]) {
			break
		}
		m.heap[i], m.heap[parent] = m.heap[parent], m.heap[i]
		i = parent
	}
}

// pop takes the first candidate off the heap.
func (m *merger) pop() candidate {
	first, last := m.heap[0], len(m.heap)-1
	m.heap[0] = m.heap[last]
	m.heap = m.heap[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < last && m.heap[child].before(m.heap[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

// noMerge is the result of pairs for two tokens that do not merge; every merge is smaller.
const noMerge = ^uint64(0)

// mergedID returns the token that a merge produces.
func mergedID(merge uint64) uint32 { return uint32(merge) }

// pairs is a hash table from two neighbouring tokens to their merge: its rank in the list of
// merges, above the 32 bits of the token that it produces. The table is filled once and then only
// read, with half of its slots free. It is twice as fast as a map.
type pairs struct {
	keys   []uint64
	merges []uint64
	shift  uint
}

// newPairs returns an empty table for up to n merges.
func newPairs(n int) pairs {
	bits := uint(4)
	for 1<<bits < 2*n {
		bits++
	}
	p := pairs{make([]uint64, 1<<bits), make([]uint64, 1<<bits), 64 - bits}
	for i := range p.merges {
		p.merges[i] = noMerge
	}
	return p
}

// place returns the slot of a key, or the free slot for it.
func (p *pairs) place(key uint64) uint64 {
	i := key * 0x9e3779b97f4a7c15 >> p.shift // Fibonacci hashing
	for p.merges[i] != noMerge && p.keys[i] != key {
		i = (i + 1) & uint64(len(p.keys)-1)
	}
	return i
}

func (p *pairs) find(left, right uint32) uint64 {
	return p.merges[p.place(uint64(left)<<32|uint64(right))]
}

// add stores a merge; it returns false if the pair already has one.
func (p *pairs) add(left, right, rank, id uint32) bool {
	key := uint64(left)<<32 | uint64(right)
	i := p.place(key)
	if p.merges[i] != noMerge {
		return false
	}
	p.keys[i], p.merges[i] = key, uint64(rank)<<32|uint64(id)
	return true
}
