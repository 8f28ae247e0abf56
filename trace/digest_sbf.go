//go:build sbf

package trace

import (
	"encoding/binary"
	"math/bits"

	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

// digest is an unfinished SHA-256: the machine's own instruction cannot be interrupted.
type digest struct {
	words [stateWords]uint32 // as everywhere; the block's are its bytes, big-endian
}

func (d *digest) begin() {
	d.words = [stateWords]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}
}

func (d *digest) length() uint64 { return uint64(d.words[24])<<32 | uint64(d.words[25]) }

// portion is how many bytes are hashed at a time.
const portion = 4 << 10

func (d *digest) write(w *exact.Worker, b []byte) {
	for len(b) > 0 {
		now := b[:min(portion, len(b))]
		b = b[len(now):]
		w.Rows(Floats(d.words[:]), 1, 1, func(_, _ int) { d.take(now) })
	}
}

func (d *digest) take(b []byte) {
	n := d.length()
	at := int(n % 64)
	n += uint64(len(b))
	d.words[24], d.words[25] = uint32(n>>32), uint32(n)
	if at > 0 {
		var block [64]byte
		for i := range 16 {
			binary.BigEndian.PutUint32(block[4*i:], d.words[8+i])
		}
		took := copy(block[at:], b)
		b = b[took:]
		if at+took < 64 {
			d.keep(block[:at+took])
			return
		}
		d.compress(block[:])
	}
	for len(b) >= 64 {
		d.compress(b[:64])
		b = b[64:]
	}
	d.keep(b)
}

// keep keeps the bytes of an unfinished block.
func (d *digest) keep(b []byte) {
	var block [64]byte
	copy(block[:], b)
	for i := range 16 {
		d.words[8+i] = binary.BigEndian.Uint32(block[4*i:])
	}
}

func (d *digest) compress(block []byte) {
	k := [64]uint32{
		0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
		0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
		0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
		0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
		0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
		0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
		0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
		0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
	}
	var v [64]uint32
	for i := range 16 {
		v[i] = binary.BigEndian.Uint32(block[4*i:])
	}
	for i := 16; i < 64; i++ {
		x, y := v[i-2], v[i-15]
		v[i] = (bits.RotateLeft32(x, -17) ^ bits.RotateLeft32(x, -19) ^ x>>10) + v[i-7] +
			(bits.RotateLeft32(y, -7) ^ bits.RotateLeft32(y, -18) ^ y>>3) + v[i-16]
	}
	s := (*[8]uint32)(d.words[:8])
	a, b, c, e0 := s[0], s[1], s[2], s[3]
	e, f, g, h := s[4], s[5], s[6], s[7]
	for i := range 64 {
		t1 := h + (bits.RotateLeft32(e, -6) ^ bits.RotateLeft32(e, -11) ^ bits.RotateLeft32(e, -25)) + (e&f ^ ^e&g) + k[i] + v[i]
		t2 := (bits.RotateLeft32(a, -2) ^ bits.RotateLeft32(a, -13) ^ bits.RotateLeft32(a, -22)) + (a&b ^ a&c ^ b&c)
		h, g, f, e, e0, c, b, a = g, f, e, e0+t1, c, b, a, t1+t2
	}
	for i, x := range [8]uint32{a, b, c, e0, e, f, g, h} {
		s[i] += x
	}
}

// suspend returns the state.
func (d *digest) suspend() []uint32 { return append([]uint32(nil), d.words[:]...) }

// resume restores a state that suspend returned. What follows the unfinished block is ignored.
func (d *digest) resume(words []uint32) {
	copy(d.words[:], words)
	var block [64]byte
	for i := range 16 {
		binary.BigEndian.PutUint32(block[4*i:], d.words[8+i])
	}
	d.keep(block[:d.length()%64])
}

func (d *digest) sum() (h wire.Hash) {
	n := d.length()
	pad := make([]byte, (119-n%64)%64+1+8)
	pad[0] = 0x80
	binary.BigEndian.PutUint64(pad[len(pad)-8:], 8*n)
	d.take(pad)
	for i := range 8 {
		binary.BigEndian.PutUint32(h[4*i:], d.words[i])
	}
	return h
}
