package codec

import (
	"fmt"

	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// HeaderLen is the length in bytes of the header with which every payload begins.
const HeaderLen = 12

// A Header identifies the codec that wrote a payload, its version and the layout, so that a payload
// of another run, model or setting is refused instead of misread:
//
//	offset  bytes
//	0       4      magic: the codec and the version of its format, in ASCII
//	4       8      the first 8 bytes of Sum("entrain/codec", magic, settings, tensors)
//
// settings is the number of settings and each setting (U32 each). tensors is for each tensor its
// name (Var), its number of dimensions (U32) and its dimensions (U64 each). Package wire defines
// these encodings.
type Header [HeaderLen]byte

// NewHeader returns the header of a codec's payloads for a layout. settings are those that change
// the meaning of the bytes. It panics if magic is not 4 bytes long.
func NewHeader(magic string, layout tensor.Layout, settings ...uint32) Header {
	var h Header
	if copy(h[:4], magic) != 4 || len(magic) != 4 {
		panic(fmt.Sprintf("codec: magic %q is not 4 bytes long", magic))
	}
	b := wire.AppendU32(nil, uint32(len(settings)))
	for _, s := range settings {
		b = wire.AppendU32(b, s)
	}
	for _, t := range layout.Tensors() {
		b = wire.AppendVar(b, []byte(t.Name))
		b = wire.AppendU32(b, uint32(len(t.Shape)))
		for _, d := range t.Shape {
			b = wire.AppendU64(b, uint64(d))
		}
	}
	sum := wire.Sum("entrain/codec", h[:4], b)
	copy(h[4:], sum[:])
	return h
}

// Check returns an error unless payload has exactly length bytes and begins with h.
func (h Header) Check(payload []byte, length int) error {
	if len(payload) != length {
		return fmt.Errorf("payload has %d bytes, want %d for this layout", len(payload), length)
	}
	if string(payload[:4]) != string(h[:4]) {
		return fmt.Errorf("payload begins with %q, not %q: it is from another codec or version", payload[:4], string(h[:4]))
	}
	if string(payload[4:HeaderLen]) != string(h[4:]) {
		return fmt.Errorf("payload is for layout %x, not %x: it is from another model or other settings", payload[4:HeaderLen], string(h[4:]))
	}
	return nil
}
