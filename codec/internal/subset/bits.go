package subset

import "encoding/binary"

// Codes are in a stream of bits: bit i of the stream is bit i%8 of byte i/8, and numbers are least
// significant bit first.

// readNumber reads the number of n bits at bit offset of b into the first words words of v, and
// clears the others. It panics if b is too short.
func readNumber(v *Number, b []byte, offset, n int, words int) {
	clear(v[words:])
	for i := range v[:words] {
		v[i] = ReadBits(b, offset+64*i, min(64, n-64*i))
	}
}

// ReadBits reads n bits at bit offset of b, n up to 64.
func ReadBits(b []byte, offset, n int) uint64 {
	if n <= 0 {
		return 0
	}
	at, shift := offset/8, uint(offset%8)
	var v uint64
	if at+9 <= len(b) {
		v = binary.LittleEndian.Uint64(b[at:])>>shift | uint64(b[at+8])<<(64-shift)
	} else {
		last := (offset + n - 1) / 8
		for i := last; i >= at; i-- {
			if s := 8 * (i - at); s == 64 {
				v |= uint64(b[i]) << (64 - shift)
			} else {
				v |= uint64(b[i]) << uint(s) >> shift
			}
		}
	}
	return v & (^uint64(0) >> (64 - uint(n)))
}

// WriteNumber writes the n low bits of words at bit offset of b, which must be 0 there.
func WriteNumber(b []byte, offset, n int, words []uint64) {
	for i := 0; n > 0; i++ {
		WriteBits(b, offset, min(64, n), words[i])
		offset += 64
		n -= 64
	}
}

// WriteBits writes the n low bits of v at bit offset of b, which must be 0 there. The other bits of
// v must be 0.
func WriteBits(b []byte, offset, n int, v uint64) {
	at, shift := offset/8, uint(offset%8)
	if at+9 <= len(b) {
		word := b[at : at+8]
		binary.LittleEndian.PutUint64(word, binary.LittleEndian.Uint64(word)|v<<shift)
		b[at+8] |= byte(v >> (64 - shift)) // 0 for a shift by 64
		return
	}
	b[at] |= byte(v << shift)
	v >>= 8 - shift
	for n -= 8 - int(shift); n > 0; n -= 8 {
		at++
		b[at] |= byte(v)
		v >>= 8
	}
}
