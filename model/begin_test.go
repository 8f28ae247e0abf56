package model

import (
	"bytes"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/tokenizer"
)

// A prompt begins with the token that the tokenizer's file puts in front of texts.
func TestAPromptBeginsAsTextsDo(t *testing.T) {
	plain, err := tokenizer.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	post := `"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
		"pair": [], "special_tokens": {"<|endoftext|>": {"id": "<|endoftext|>", "ids": [0], "tokens": ["<|endoftext|>"]}}}`
	begins, err := tokenizer.Parse(bytes.Replace(plain.JSON(), []byte(`"post_processor": null`), []byte(post), 1))
	if err != nil {
		t.Fatal(err)
	}
	without := (&Generator{Tokenizer: plain}).Encode("ab")
	if got := (&Generator{Tokenizer: begins}).Encode("ab"); !slices.Equal(got, append([]uint32{0}, without...)) {
		t.Errorf("the prompt is %v, without its beginning %v", got, without)
	}
	if got := (&Generator{Tokenizer: begins, Special: true}).Encode("ab"); len(got) != 3 || got[0] != 0 {
		t.Errorf("the prompt is %v", got)
	}
}
