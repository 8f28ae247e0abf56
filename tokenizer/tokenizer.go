// Package tokenizer converts text to token ids and back.
//
// All members of a run must tokenize text alike, so a tokenizer is identified by a hash: the
// SHA-256 of its definition in the format of Hugging Face's tokenizers library, tokenizer.json. The
// manifest of a data set records the hash (package data), a checkpoint contains the file (package
// checkpoint), and `sha256sum tokenizer.json` prints the hash.
//
// Bytes and a BPE of bytes, as in GPT-2, Llama 3 and Qwen, are lossless: they restore any bytes,
// valid UTF-8 or not, unless the tokenizer.json asks for Unicode's normal form. A BPE of characters
// in SentencePiece's manner, as in Llama 2 and Mistral, keeps all but what sentence says. Parse
// reads a BPE from a tokenizer.json, and package tokenizer/learn creates new ones of bytes. Bytes
// has the 256 byte values, id = byte, and needs no file. Its tokenizer.json describes it as a byte-
// level BPE without merges, whose vocabulary is GPT-2's table of one printable character per byte,
// so that transformers produces the same ids:
//
//	text    "Hi é"
//	bytes   48 69 20 c3 a9
//	ids     72 105 32 195 169
//	pieces  H  i   Ġ  Ã   ©      as vocab in tokenizer.json spells them
package tokenizer

import (
	"fmt"

	"github.com/entrain-network/entrain/wire"
)

// A Tokenizer maps text to token ids in [0, Vocab). Its methods are pure and may be called
// concurrently.
type Tokenizer interface {
	// Name returns the tokenizer's name in run configurations and manifests: lower-case letters,
	// digits and '-'.
	Name() string

	// Hash returns the SHA-256 of JSON().
	Hash() wire.Hash

	// Vocab returns the number of token ids.
	Vocab() uint32

	// End returns the id that ends a document.
	End() uint32

	// Encode appends the ids of text to dst.
	Encode(dst []uint32, text []byte) []uint32

	// Decode appends the text of ids to dst; an id that is not below Vocab is an error.
	Decode(dst []byte, ids []uint32) ([]byte, error)

	// JSON returns the definition: the bytes of tokenizer.json. The caller may change the slice.
	JSON() []byte
}

// byName returns the built-in tokenizer with the given name.
func byName(name string) (Tokenizer, error) {
	if name == (Bytes{}).Name() {
		return Bytes{}, nil
	}
	return nil, fmt.Errorf("unknown tokenizer %q: choose %q, or give a tokenizer.json", name, Bytes{}.Name())
}

// Find returns the built-in tokenizer with the given name after checking that its hash is want, as
// data sets and checkpoints require.
func Find(name string, want wire.Hash) (Tokenizer, error) {
	t, err := byName(name)
	if err != nil {
		return nil, err
	}
	return t, checkHash(t, want)
}

// Resolve returns the tokenizer that a data set or a checkpoint names: the built-in one of that
// name, or else the one that file, its tokenizer.json, defines. Its name and hash must match.
func Resolve(name string, want wire.Hash, file []byte) (Tokenizer, error) {
	if name == (Bytes{}).Name() {
		return Find(name, want)
	}
	t, err := Parse(file)
	if err != nil {
		return nil, err
	}
	if t.Name() != name {
		return nil, fmt.Errorf("tokenizer.json holds %[2]q, want %[1]q", name, t.Name())
	}
	return t, checkHash(t, want)
}

func checkHash(t Tokenizer, want wire.Hash) error {
	if got := t.Hash(); got != want {
		return fmt.Errorf("tokenizer %q has hash %s here and %s there: use the version of entrain, or the tokenizer.json, that the data was prepared with",
			t.Name(), got, want)
	}
	return nil
}
