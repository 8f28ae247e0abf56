package tokenizer

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// The text around the vocabulary in tokenizer.json. The fields and their order match the output of
// version 0.23 of the tokenizers library. use_regex is false: without merges, splitting into words
// first would change nothing and cost time.
const (
	jsonHead = `{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [],
  "normalizer": null,
  "pre_tokenizer": {
    "type": "ByteLevel",
    "add_prefix_space": false,
    "trim_offsets": false,
    "use_regex": false
  },
  "post_processor": null,
  "decoder": {
    "type": "ByteLevel",
    "add_prefix_space": false,
    "trim_offsets": false,
    "use_regex": false
  },
  "model": {
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": false,
    "vocab": {
`
	jsonTail = `    },
    "merges": []
  }
}
`
)

// JSON returns the definition of Bytes as tokenizer.json. No token is declared special: the piece
// of byte 0 is the letter Ā, and a special token with that spelling would capture the letter in
// ordinary text.
func (Bytes) JSON() []byte {
	b := []byte(jsonHead)
	for c := range 256 {
		b = append(b, "      "...)
		b = appendString(b, string(piece(byte(c))))
		b = append(b, ": "...)
		b = strconv.AppendInt(b, int64(c), 10)
		if c < 255 {
			b = append(b, ',')
		}
		b = append(b, '\n')
	}
	return append(b, jsonTail...)
}

// piece returns the printable character for a byte in GPT-2's byte-level vocabularies: the byte's
// own Latin-1 character if it is visible, and otherwise the next unused one from U+0100 up (Radford
// et al. 2019, encoder.py, bytes_to_unicode).
func piece(c byte) rune {
	if visible(c) {
		return rune(c)
	}
	r := rune(0x100)
	for other := range c {
		if !visible(other) {
			r++
		}
	}
	return r
}

func visible(c byte) bool {
	return '!' <= c && c <= '~' || 0xa1 <= c && c <= 0xac || 0xae <= c
}

// ConfigJSON returns tokenizer_config.json. It makes transformers use tokenizer.json with the given
// number of positions. It names the token that ends what the model writes if that token is special:
// the one of the given id, or if that is nil the one that ends a text.
func ConfigJSON(t Tokenizer, contextTokens int, end *uint32) []byte {
	if contextTokens <= 0 {
		panic(fmt.Sprintf("tokenizer: context of %d tokens", contextTokens))
	}
	eos := ""
	if bpe, ok := t.(*BPE); ok {
		if end == nil || int64(*end) >= int64(len(bpe.text)) {
			end = &bpe.end
		}
		eos = "  \"eos_token\": " + string(appendString(nil, string(bpe.text[*end]))) + ",\n"
	}
	return []byte(`{
  "tokenizer_class": "PreTrainedTokenizerFast",
  "add_prefix_space": false,
  "clean_up_tokenization_spaces": false,
` + eos + `  "model_max_length": ` + strconv.Itoa(contextTokens) + `
}
`)
}

// appendString appends s as a JSON string.
func appendString(dst []byte, s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("tokenizer: a string has no JSON: " + err.Error())
	}
	return append(dst, b...)
}
