package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// blank stands for a space in the vocabularies of SentencePiece.
const blank = "▁" // U+2581

// sentence is how a BPE in SentencePiece's manner, such as those of Llama 2 and Mistral, reads
// text: its tokens spell characters, with blank for a space, and a character without a token
// becomes its bytes. Such a tokenizer is not lossless: texts get a blank at the front, and a blank
// in a text comes back as a space.
type sentence struct {
	runes map[rune]uint32 // tokens of single characters
	// Where a blank is put in front of a text that does not begin with one: at every part between
	// added tokens, or only at the beginning of the whole.
	always, first bool
	cut           bool // blanks begin words, which are merged separately
}

// normalizer changes text before it is cut into words.
type normalizer struct {
	nfc    bool // to Unicode's normalization form C
	front  bool // put a blank in front
	spaces bool // replace spaces by blanks
}

// normalizerJSON is a normalizer of any known type.
type normalizerJSON struct {
	Type        string            `json:"type"`
	Normalizers []json.RawMessage `json:"normalizers"` // of Sequence
	Prepend     string            `json:"prepend"`     // of Prepend
	Pattern     *patternJSON      `json:"pattern"`     // of Replace
	Content     string            `json:"content"`     // of Replace
}

// parseNormalizer reads normalizer.
func parseNormalizer(b json.RawMessage) (n normalizer, err error) {
	if isNull(b) {
		return n, nil
	}
	var step normalizerJSON
	if err := decodeStep(b, &step); err != nil {
		return n, err
	}
	steps := []normalizerJSON{step}
	if step.Type == "Sequence" {
		steps = make([]normalizerJSON, len(step.Normalizers))
		for i, raw := range step.Normalizers {
			if err := json.Unmarshal(raw, &steps[i]); err != nil {
				return n, err
			}
		}
	}
	for _, s := range steps {
		switch {
		case s.Type == "NFC" && n == normalizer{}:
			n.nfc = true
		case s.Type == "Prepend" && s.Prepend == blank && !n.front && !n.spaces:
			n.front = true
		case s.Type == "Replace" && s.Content == blank && s.Pattern != nil && s.Pattern.String != nil && *s.Pattern.String == " ":
			n.spaces = true
		default:
			return n, fmt.Errorf("%.80q is not supported, because it changes the text: only NFC, a blank in front, and blanks for spaces", s.Type)
		}
	}
	return n, nil
}

// apply returns the normalized text, which may be text itself.
func (n normalizer) apply(text []byte) []byte {
	if n.nfc {
		text = norm.NFC.Bytes(text)
	}
	if n.front && len(text) > 0 {
		text = append([]byte(blank), text...)
	}
	if n.spaces {
		text = bytes.ReplaceAll(text, []byte(" "), []byte(blank))
	}
	return text
}

// metaspaceJSON is the pre-tokenizer Metaspace.
type metaspaceJSON struct {
	Type           string `json:"type"`
	Replacement    string `json:"replacement"`
	PrependScheme  string `json:"prepend_scheme"`
	AddPrefixSpace *bool  `json:"add_prefix_space"` // of old versions: always, or never
	Split          *bool  `json:"split"`
	StrRep         string `json:"str_rep"` // of old versions: the replacement again
}

// cutsAtSpaces reports whether a pre-tokenizer is Gemma's: a Split at spaces.
func cutsAtSpaces(b json.RawMessage) bool {
	step, err := parseStep(b)
	return err == nil && step.Type == "Split" && step.Pattern != nil && step.Pattern.String != nil && *step.Pattern.String == " " && !step.Invert && step.Behavior != "Removed"
}

// readSentence fills in what a BPE with byte_fallback needs: the tokens of characters and bytes,
// and where blanks are put.
func (t *BPE) readSentence(f *definition) error {
	s := &sentence{runes: make(map[rune]uint32)}
	if f.Model.IgnoreMerges {
		return errors.New("ignore_merges with byte_fallback is not supported")
	}
	switch {
	case t.normal.spaces && cutsAtSpaces(f.PreTokenizer): // of which there are none then
	case !isNull(f.PreTokenizer):
		var m metaspaceJSON
		if err := decodeStep(f.PreTokenizer, &m); err != nil {
			return fmt.Errorf("pre_tokenizer: %w", err)
		}
		if m.Type != "Metaspace" || m.Replacement != blank || t.normal != (normalizer{}) {
			return fmt.Errorf("pre_tokenizer: %.80q is not supported with byte_fallback, only Metaspace with %q and without a normalizer", m.Type, blank)
		}
		scheme := m.PrependScheme
		if scheme == "" {
			scheme = "always"
			if m.AddPrefixSpace != nil && !*m.AddPrefixSpace {
				scheme = "never"
			}
		}
		switch scheme {
		case "always":
			s.always = true
		case "first":
			s.first = true
		case "never":
		default:
			return fmt.Errorf("pre_tokenizer: prepend_scheme %.80q is not known", scheme)
		}
		s.cut = m.Split == nil || *m.Split
		t.spaces = true
	case !t.normal.spaces:
		return errors.New("neither a Metaspace nor a normalizer replaces spaces")
	}
	for spelling, id := range f.Model.Vocab {
		text := []byte(strings.ReplaceAll(spelling, blank, " "))
		if hex, ok := strings.CutPrefix(spelling, "<0x"); ok && len(hex) == 3 && hex[2] == '>' {
			if c, err := strconv.ParseUint(hex[:2], 16, 8); err == nil {
				text = []byte{byte(c)}
			}
		}
		if err := t.setText(id, text, spelling); err != nil {
			return fmt.Errorf("vocab: %w", err)
		}
		if r, n := utf8.DecodeRuneInString(spelling); n == len(spelling) && (r != utf8.RuneError || n > 1) {
			s.runes[r] = id
		}
	}
	for c := range t.bytes {
		id, ok := f.Model.Vocab[fmt.Sprintf("<0x%02X>", c)]
		if !ok {
			return fmt.Errorf("vocab: byte <0x%02X> has no token: not every text could be encoded", c)
		}
		t.bytes[c] = id
	}
	t.sentence = s
	return nil
}

// encode appends the ids of a part of a text, which is the beginning of the whole if atFront is
// set, by add, which appends those of a word.
func (s *sentence) encode(t *BPE, dst []uint32, text []byte, atFront bool, add func(dst []uint32, word []byte) []uint32) []uint32 {
	if t.spaces {
		text = bytes.ReplaceAll(text, []byte(" "), []byte(blank))
	}
	if (s.always || s.first && atFront) && !bytes.HasPrefix(text, []byte(blank)) {
		text = append([]byte(blank), text...)
	}
	for len(text) > 0 {
		n := len(text)
		if s.cut {
			if i := bytes.Index(text[min(len(blank), n):], []byte(blank)); i >= 0 && bytes.HasPrefix(text, []byte(blank)) {
				n = i + len(blank)
			} else if i := bytes.Index(text, []byte(blank)); i > 0 {
				n = i
			}
		}
		dst = add(dst, text[:n])
		text = text[n:]
	}
	return dst
}

// symbols appends the tokens of a word before merges: one a character that has a token, and one a
// byte of the others. A byte that is not UTF-8 is its token.
func (t *BPE) symbols(dst []uint32, word []byte) []uint32 {
	if t.sentence == nil {
		for _, c := range word {
			dst = append(dst, t.bytes[c])
		}
		return dst
	}
	for i := 0; i < len(word); {
		r, n := utf8.DecodeRune(word[i:])
		if id, ok := t.sentence.runes[r]; ok && (r != utf8.RuneError || n > 1) {
			dst = append(dst, id)
		} else {
			for _, c := range word[i : i+n] {
				dst = append(dst, t.bytes[c])
			}
		}
		i += n
	}
	return dst
}

// Begin returns the token that t's post_processor puts in front of every text, if there is one.
// Texts that a model reads begin with it; those that data sets hold do not.
func Begin(t Tokenizer) (id uint32, ok bool) {
	bpe, ok := t.(*BPE)
	if !ok || bpe.begin == nil {
		return 0, false
	}
	return *bpe.begin, true
}

// postJSON is a post-processor, as far as it says with what a text begins.
type postJSON struct {
	Type       string     `json:"type"`
	Processors []postJSON `json:"processors"` // of Sequence
	Single     []struct {
		SpecialToken *struct {
			ID string `json:"id"`
		}
	} `json:"single"` // of TemplateProcessing
	SpecialTokens map[string]struct {
		IDs []uint32 `json:"ids"`
	} `json:"special_tokens"`
}

// begin returns the token that a TemplateProcessing puts first.
func (p postJSON) begin() *uint32 {
	for _, q := range p.Processors {
		if id := q.begin(); id != nil {
			return id
		}
	}
	if len(p.Single) > 0 && p.Single[0].SpecialToken != nil {
		if ids := p.SpecialTokens[p.Single[0].SpecialToken.ID].IDs; len(ids) == 1 {
			return &ids[0]
		}
	}
	return nil
}
