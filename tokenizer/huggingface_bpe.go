package tokenizer

import (
	"bytes"
	"strconv"
)

// EachWord calls do for each word of text, cut as in GPT-2 and in new tokenizers.
func EachWord(text []byte, do func(word []byte)) { splitter{pattern: gpt2}.each(text, do) }

// endOfText is the token that ends documents in new tokenizers, with id 0.
const endOfText = "<|endoftext|>"

// FirstMerged is the id of the first merged token in a new tokenizer: endOfText and the 256 bytes
// come before.
const FirstMerged = 257

// ByteToken returns the id of a byte in a new tokenizer. The bytes are sorted by their spellings,
// as in the tokenizers library.
func ByteToken(c byte) uint32 {
	id := uint32(1)
	for other := range 256 {
		if piece(byte(other)) < piece(c) {
			id++
		}
	}
	return id
}

// A Merge joins two neighbouring tokens into one.
type Merge struct {
	Left, Right, Token uint32
}

// New returns the tokenizer with these merges, the most important first, built from a new
// tokenizer.json. Token is at most the number of tokens before it; a merge may produce the token of
// an earlier one.
func New(merges []Merge) (*BPE, error) {
	spelling := make([]string, FirstMerged, FirstMerged+len(merges))
	spelling[0] = endOfText
	for c := range 256 {
		spelling[ByteToken(byte(c))] = string(piece(byte(c)))
	}
	var list bytes.Buffer
	for i, m := range merges {
		left, right := spelling[m.Left], spelling[m.Right]
		if int(m.Token) == len(spelling) {
			spelling = append(spelling, left+right)
		}
		if i > 0 {
			list.WriteByte(',')
		}
		list.WriteString("\n      [")
		list.Write(appendString(nil, left))
		list.WriteString(", ")
		list.Write(appendString(nil, right))
		list.WriteByte(']')
	}
	b := []byte(bpeHead)
	for id, s := range spelling {
		if id > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, "\n      "...), appendString(nil, s)...), ": "...)
		b = strconv.AppendInt(b, int64(id), 10)
	}
	b = append(b, "\n    },\n    \"merges\": ["...)
	b = append(b, list.Bytes()...)
	b = append(b, "\n    ]\n  }\n}\n"...)
	return parseBPE(b)
}

// bpeHead is the text before the vocabulary in the tokenizer.json of New.
const bpeHead = `{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [
    {
      "id": 0,
      "content": "<|endoftext|>",
      "single_word": false,
      "lstrip": false,
      "rstrip": false,
      "normalized": false,
      "special": true
    }
  ],
  "normalizer": null,
  "pre_tokenizer": {
    "type": "ByteLevel",
    "add_prefix_space": false,
    "trim_offsets": true,
    "use_regex": true
  },
  "post_processor": null,
  "decoder": {
    "type": "ByteLevel",
    "add_prefix_space": false,
    "trim_offsets": true,
    "use_regex": true
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
    "vocab": {`
