package tokenizer

import (
	"fmt"

	"github.com/entrain-network/entrain/wire"
)

// Bytes is the tokenizer whose tokens are the 256 bytes.
type Bytes struct{}

// Name returns "bytes".
func (Bytes) Name() string { return "bytes" }

// Vocab returns 256.
func (Bytes) Vocab() uint32 { return 256 }

// End returns 0: the NUL byte does not occur in text. If it does, Decode(Encode(text)) is still
// text, but the ids read as two documents.
func (Bytes) End() uint32 { return 0 }

// Hash returns the SHA-256 of JSON().
func (b Bytes) Hash() wire.Hash { return wire.SHA256(b.JSON()) }

// Encode appends one id for each byte of text.
func (Bytes) Encode(dst []uint32, text []byte) []uint32 {
	for _, c := range text {
		dst = append(dst, uint32(c))
	}
	return dst
}

// Decode appends one byte for each id.
func (Bytes) Decode(dst []byte, ids []uint32) ([]byte, error) {
	for i, id := range ids {
		if id > 255 {
			return dst, fmt.Errorf("token %d is %d, tokenizer %q has only 256", i, id, "bytes")
		}
		dst = append(dst, byte(id))
	}
	return dst, nil
}
