//go:build !sbf

package trace

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"hash"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

// digest is an unfinished SHA-256. Its stateWords are the encoding of crypto/sha256 after the
// magic, each four bytes a big-endian word: the 8 words of the state, the 64 bytes of the
// unfinished block, and the number of bytes hashed.
type digest struct{ h hash.Hash }

// digestMagic is the prefix of a state as crypto/sha256 encodes it.
const digestMagic = "sha\x03"

func (d *digest) begin() { d.h = sha256.New() }

func (d *digest) write(_ *exact.Worker, b []byte) { d.h.Write(b) }

// suspend returns the state.
func (d *digest) suspend() []uint32 {
	b, err := d.h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil || len(b) != len(digestMagic)+4*stateWords || string(b[:len(digestMagic)]) != digestMagic {
		panic("trace: unknown encoding of the state by crypto/sha256")
	}
	w := make([]uint32, stateWords)
	for i := range w {
		w[i] = binary.BigEndian.Uint32(b[len(digestMagic)+4*i:])
	}
	return w
}

// resume restores a state that suspend returned. Any words are a valid state.
func (d *digest) resume(words []uint32) {
	b := []byte(digestMagic)
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	d.begin()
	if err := d.h.(encoding.BinaryUnmarshaler).UnmarshalBinary(b); err != nil {
		panic("trace: crypto/sha256 refuses a state: " + err.Error())
	}
}

func (d *digest) sum() (h wire.Hash) {
	d.h.Sum(h[:0])
	return h
}
