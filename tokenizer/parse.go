package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/entrain-network/entrain/wire"
)

// endTokens are the names of the end-of-document token in known vocabularies.
var endTokens = []string{"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "[EOS]", "<｜end▁of▁sentence｜>"}

// definition is tokenizer.json. Unknown fields are refused, because they could change ids.
type definition struct {
	Version       string          `json:"version"`
	Truncation    json.RawMessage `json:"truncation"` // for batches, like padding: not applied
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []addedJSON     `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"` // adds tokens at the ends: not applied
	Decoder       json.RawMessage `json:"decoder"`
	Model         modelJSON       `json:"model"`
}

type addedJSON struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type modelJSON struct {
	Type    string   `json:"type"`
	Dropout *float64 `json:"dropout"`
	// never used, nor the next: every byte has a token
	UnkToken     json.RawMessage `json:"unk_token"`
	FuseUnk      bool            `json:"fuse_unk"`
	ByteFallback bool            `json:"byte_fallback"` // tokens spell characters, see sentence
	Prefix       *string         `json:"continuing_subword_prefix"`
	Suffix       *string         `json:"end_of_word_suffix"`
	IgnoreMerges bool            `json:"ignore_merges"`
	Vocab        vocabJSON       `json:"vocab"`
	Merges       []mergeJSON     `json:"merges"`
}

// vocabJSON is the object that maps spellings to ids; no spelling may occur twice.
type vocabJSON map[string]uint32

// UnmarshalJSON reads the object.
func (v *vocabJSON) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("vocab is not an object: only tokenizers of type BPE are known")
	}
	*v = make(vocabJSON)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		spelling, ok := t.(string)
		if !ok {
			return fmt.Errorf("vocab: %v is not a string", t)
		}
		var id uint32
		if err := d.Decode(&id); err != nil {
			return fmt.Errorf("vocab: the id of %.80q is not a number from 0 to 4294967295", spelling)
		}
		if _, ok := (*v)[spelling]; ok {
			return fmt.Errorf("vocab: %.80q occurs twice", spelling)
		}
		(*v)[spelling] = id
	}
	return nil
}

// mergeJSON is a pair of spellings, written as ["a", "b"] or as "a b".
type mergeJSON [2]string

// UnmarshalJSON reads either form.
func (m *mergeJSON) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var list []string
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		if len(list) != 2 {
			return fmt.Errorf("merge of %d spellings", len(list))
		}
		*m = mergeJSON(list)
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	left, right, ok := strings.Cut(s, " ")
	if !ok || strings.Contains(right, " ") {
		return fmt.Errorf("merge %.80q is not two spellings with a space between them", s)
	}
	*m = mergeJSON{left, right}
	return nil
}

// Parse reads a tokenizer.json: the one of Bytes, or a BPE. It refuses anything it does
// not know, so that ids are never silently wrong.
func Parse(b []byte) (Tokenizer, error) {
	if len(b) > JSONBytesMax {
		return nil, fmt.Errorf("tokenizer.json has %d bytes, more than %d", len(b), JSONBytesMax)
	}
	if wire.SHA256(b) == (Bytes{}).Hash() {
		return Bytes{}, nil
	}
	t, err := parseBPE(b)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return t, nil
}

func parseBPE(b []byte) (*BPE, error) {
	var f definition
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		var other struct {
			Model struct {
				Type string `json:"type"`
			} `json:"model"`
		}
		if kind := &other.Model.Type; json.Unmarshal(b, &other) == nil && *kind != "" && *kind != "BPE" {
			return nil, fmt.Errorf("the model is %.80q: only tokenizers of type BPE are known, and another type cannot become one exactly: choose a model that has one", *kind)
		}
		return nil, fmt.Errorf("%w%s", err, lineOf(b, d.InputOffset()))
	}
	if rest := bytes.TrimSpace(b[d.InputOffset():]); len(rest) > 0 {
		return nil, fmt.Errorf("data after the object%s", lineOf(b, d.InputOffset()))
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	t := &BPE{json: bytes.Clone(b), hash: wire.SHA256(b), idsMax: min(VocabMax, len(f.Model.Vocab)+len(f.AddedTokens)+gapMax)}
	var err error
	if t.normal, err = parseNormalizer(f.Normalizer); err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	if f.Model.ByteFallback {
		err = t.readSentence(&f)
	} else {
		err = t.readBytes(&f)
	}
	if err != nil {
		return nil, err
	}
	if err := t.readMerges(f.Model.Vocab, f.Model.Merges); err != nil {
		return nil, fmt.Errorf("merges: %w", err)
	}
	if t.sentence == nil {
		t.readWhole(f.Model.IgnoreMerges)
	}
	var post postJSON
	if json.Unmarshal(f.PostProcessor, &post) == nil {
		t.begin = post.begin()
	}
	if err := t.readAdded(f.Model.Vocab, f.AddedTokens); err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	for _, text := range t.text {
		t.longest = max(t.longest, len(text))
	}
	if t.sentence != nil {
		t.longest *= len(blank) // a space is a blank in its words
	}
	return t, nil
}

// readBytes fills in what a BPE of bytes needs.
func (t *BPE) readBytes(f *definition) (err error) {
	if t.normal.front || t.normal.spaces {
		return errors.New("normalizer: blanks for spaces in a vocabulary that spells bytes")
	}
	if t.words, err = parseSplitter(f.PreTokenizer); err != nil {
		return fmt.Errorf("pre_tokenizer: %w", err)
	}
	if err := t.readVocab(f.Model.Vocab); err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	return nil
}

// lineOf describes the line of an offset.
func lineOf(b []byte, offset int64) string {
	offset = min(max(offset, 0), int64(len(b)))
	return fmt.Sprintf(", at line %d", 1+bytes.Count(b[:offset], []byte("\n")))
}

// check refuses features that are not implemented.
func (f *definition) check() error {
	m := &f.Model
	switch {
	case f.Version != "" && f.Version != "1.0":
		return fmt.Errorf("unknown version %q, want \"1.0\"", f.Version)
	case m.Type != "" && m.Type != "BPE":
		return fmt.Errorf("the model is %.80q, not a byte-level \"BPE\"", m.Type)
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("dropout of %v would make ids random", *m.Dropout)
	case m.Prefix != nil && *m.Prefix != "":
		return fmt.Errorf("continuing_subword_prefix is %.80q: byte-level vocabularies have none", *m.Prefix)
	case m.Suffix != nil && *m.Suffix != "":
		return fmt.Errorf("end_of_word_suffix is %.80q: byte-level vocabularies have none", *m.Suffix)
	case len(m.Vocab) == 0:
		return errors.New("the model has no vocab")
	case len(f.AddedTokens) > addedMax:
		return fmt.Errorf("%d added tokens are more than %d", len(f.AddedTokens), addedMax)
	}
	var decoder struct {
		Type string `json:"type"`
	}
	err := json.Unmarshal(f.Decoder, &decoder)
	if m.ByteFallback {
		if err != nil || decoder.Type != "Sequence" && decoder.Type != "Metaspace" {
			return fmt.Errorf("the decoder is %.80q: with byte_fallback it must be a Sequence or a Metaspace", decoder.Type)
		}
		return nil
	}
	if err != nil || decoder.Type != "ByteLevel" {
		return fmt.Errorf("the decoder is %.80q, not \"ByteLevel\": the vocabulary does not spell bytes", decoder.Type)
	}
	return nil
}

func isNull(b json.RawMessage) bool { return len(b) == 0 || string(b) == "null" }

// readVocab fills the token texts and the byte tokens of t.
func (t *BPE) readVocab(vocab vocabJSON) error {
	for spelling, id := range vocab {
		text, ok := spelled(spelling)
		if !ok {
			text = []byte(spelling) // an added token that the vocabulary lists as well
		}
		if err := t.setText(id, text, spelling); err != nil {
			return err
		}
	}
	for c := range t.bytes {
		id, ok := vocab[string(piece(byte(c)))]
		if !ok {
			return fmt.Errorf("byte %#02x (%q) has no token: not every text could be encoded", c, piece(byte(c)))
		}
		t.bytes[c] = id
	}
	return nil
}

// setText stores a token's text.
func (t *BPE) setText(id uint32, text []byte, spelling string) error {
	switch {
	case uint64(id) >= uint64(t.idsMax):
		return fmt.Errorf("id %d of %.80q is not below %d", id, spelling, t.idsMax)
	case len(text) == 0:
		return fmt.Errorf("token %d is empty", id)
	case len(text) > tokenBytesMax:
		return fmt.Errorf("token %d has %d bytes, more than %d", id, len(text), tokenBytesMax)
	}
	if n := int(id) + 1; n > len(t.text) {
		t.text = append(t.text, make([][]byte, n-len(t.text))...)
	}
	if t.text[id] != nil {
		return fmt.Errorf("%.80q and another spelling both have id %d", spelling, id)
	}
	t.text[id] = text
	return nil
}

// spelled returns the bytes for a spelling in printable characters; it returns false if the
// spelling has other characters.
func spelled(s string) ([]byte, bool) {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		switch {
		case r < 0x100 && visible(byte(r)):
			b = append(b, byte(r))
		case 0x100 <= r && r < 0x100+rune(len(invisible)):
			b = append(b, invisible[r-0x100])
		default:
			return nil, false
		}
	}
	return b, true
}

// invisible lists the bytes that characters from U+0100 on represent.
var invisible = func() (list []byte) {
	for c := range 256 {
		if !visible(byte(c)) {
			list = append(list, byte(c))
		}
	}
	return list
}()

// readMerges fills the table of merges.
func (t *BPE) readMerges(vocab vocabJSON, merges []mergeJSON) error {
	t.pairs = newPairs(len(merges))
	for rank, m := range merges {
		var ids [3]uint32
		for i, spelling := range [3]string{m[0], m[1], m[0] + m[1]} {
			id, ok := vocab[spelling]
			if !ok {
				return fmt.Errorf("%d: %.80q is not in the vocab", rank, spelling)
			}
			ids[i] = id
		}
		if !t.pairs.add(ids[0], ids[1], uint32(rank), ids[2]) {
			return fmt.Errorf("%d: %.80q and %.80q are merged by an earlier one", rank, m[0], m[1])
		}
	}
	return nil
}

// readWhole finds the words that become one token: the whole vocabulary if merges are ignored for
// such words, else the words that merges produce.
func (t *BPE) readWhole(ignoreMerges bool) {
	t.whole = make(map[string]uint32, len(t.text))
	var m merger
	var ids []uint32
	none := map[string]uint32{}
	bare := &BPE{whole: none, bytes: t.bytes, pairs: t.pairs}
	for id, text := range t.text {
		if text == nil {
			continue
		}
		if !ignoreMerges {
			if ids = bare.appendWord(ids[:0], text, &m); len(ids) != 1 || ids[0] != uint32(id) {
				continue
			}
		}
		t.whole[string(text)] = uint32(id)
	}
}

// readAdded stores the added tokens, whether or not they are in the vocabulary, and finds the one
// that ends a document.
func (t *BPE) readAdded(vocab vocabJSON, list []addedJSON) error {
	var tokens []addedToken
	ends := make(map[string]uint32)
	seen := make(map[string]bool)
	for _, a := range list {
		if !utf8.ValidString(a.Content) || seen[a.Content] {
			return fmt.Errorf("%.80q occurs twice or is empty", a.Content)
		}
		seen[a.Content] = true
		if id, ok := vocab[a.Content]; ok {
			if id != a.ID {
				return fmt.Errorf("%.80q has id %d here and %d in the vocab", a.Content, a.ID, id)
			}
			t.text[id] = []byte(a.Content)
		} else if err := t.setText(a.ID, []byte(a.Content), a.Content); err != nil {
			return err
		}
		if a.Content == "" {
			return fmt.Errorf("token %d is empty", a.ID)
		}
		if a.Special {
			ends[a.Content] = a.ID
		}
		tokens = append(tokens, addedToken{a.ID, a.Content, a.Special, a.Normalized, a.SingleWord, a.LStrip, a.RStrip})
	}
	t.added = newAddedTokens(tokens, t.normal)
	for _, name := range endTokens {
		if id, ok := ends[name]; ok {
			t.end = id
			return nil
		}
	}
	return fmt.Errorf("no special token ends a document: want one of %s", strings.Join(endTokens, ", "))
}
