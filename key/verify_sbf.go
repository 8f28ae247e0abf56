//go:build sbf

package key

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// verify is ZIP 215 by the machine's curve instructions: [8](sB - kA - R) is the identity. The
// points are decoded as ZIP 215 wants it (non-canonical encodings are taken), by the library that
// the rule was written after.
func verify(pub *Public, signed []byte, sig *Signature) bool {
	var scalars [3][32]byte
	copy(scalars[0][:], sig[32:])
	if !below(load(&scalars[0])) {
		return false
	}
	k := reduce(sha512(sig[:32], pub[:], signed))
	store(&scalars[1], negate(k))
	store(&scalars[2], negate([4]uint64{1}))
	points := [3][32]byte{base, [32]byte(pub[:]), [32]byte(sig[:32])}
	var sum [32]byte
	if solMsm(0, &scalars[0], &points[0], 3, &sum) != 0 {
		return false
	}
	for range 3 {
		if solGroupOp(0, 0, &sum, &sum, &sum) != 0 {
			return false
		}
	}
	return sum == [32]byte{1}
}

//export sol_curve_multiscalar_mul
func solMsm(curve uint64, scalars, points *[32]byte, n uint64, out *[32]byte) uint64

//export sol_curve_group_op
func solGroupOp(curve, op uint64, left, right, out *[32]byte) uint64

var base = [32]byte{0x58, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
	0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66}

// The order of the group, 2^252 + 27742317777372353535851937790883648493.
const (
	l0 = 0x5812631a5cf5d3ed
	l1 = 0x14def9dea2f79cd6
	l2 = 0
	l3 = 0x1000000000000000
)

func load(b *[32]byte) (n [4]uint64) {
	for i := range n {
		n[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return n
}

func store(b *[32]byte, n [4]uint64) {
	for i, v := range n {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
}

func subtractOrder(n [4]uint64) (d [4]uint64, borrow uint64) {
	d[0], borrow = bits.Sub64(n[0], l0, 0)
	d[1], borrow = bits.Sub64(n[1], l1, borrow)
	d[2], borrow = bits.Sub64(n[2], l2, borrow)
	d[3], borrow = bits.Sub64(n[3], l3, borrow)
	return d, borrow
}

func below(n [4]uint64) bool {
	_, borrow := subtractOrder(n)
	return borrow == 1
}

func negate(n [4]uint64) [4]uint64 {
	if n == [4]uint64{} {
		return n
	}
	var d [4]uint64
	b := uint64(0)
	d[0], b = bits.Sub64(l0, n[0], 0)
	d[1], b = bits.Sub64(l1, n[1], b)
	d[2], b = bits.Sub64(l2, n[2], b)
	d[3], _ = bits.Sub64(l3, n[3], b)
	return d
}

// reduce returns a number of 512 bits, little endian, modulo the order, a bit at a time.
func reduce(h [64]byte) [4]uint64 {
	var r [4]uint64
	for w := 7; w >= 0; w-- {
		x := binary.LittleEndian.Uint64(h[8*w:])
		for range 64 {
			r[3] = r[3]<<1 | r[2]>>63
			r[2] = r[2]<<1 | r[1]>>63
			r[1] = r[1]<<1 | r[0]>>63
			r[0] = r[0]<<1 | x>>63
			x <<= 1
			if r[3] >= l3 {
				if d, borrow := subtractOrder(r); borrow == 0 {
					r = d
				}
			}
		}
	}
	return r
}

var sha512K = [80]uint64{
	0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc,
	0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118,
	0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2,
	0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694,
	0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
	0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5,
	0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
	0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70,
	0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df,
	0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
	0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30,
	0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8,
	0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8,
	0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
	0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
	0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b,
	0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178,
	0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b,
	0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c,
	0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
}

// sha512 returns the digest of the parts.
func sha512(a, b, c []byte) (out [64]byte) {
	h := [8]uint64{0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
		0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179}
	n := uint64(len(a) + len(b) + len(c))
	msg := make([]byte, 0, (n+17+127)/128*128)
	msg = append(append(append(msg, a...), b...), c...)
	msg = append(msg, 0x80)
	msg = msg[:cap(msg)]
	binary.BigEndian.PutUint64(msg[len(msg)-8:], n*8)
	for ; len(msg) > 0; msg = msg[128:] {
		block(&h, (*[128]byte)(unsafe.Pointer(unsafe.SliceData(msg))))
	}
	for i, v := range h {
		binary.BigEndian.PutUint64(out[8*i:], v)
	}
	return out
}

func block(s *[8]uint64, msg *[128]byte) {
	var w [80]uint64
	for i := range 16 {
		w[i] = binary.BigEndian.Uint64(msg[8*i:])
	}
	for i := 16; i < 80; i++ {
		a, b := w[i-2], w[i-15]
		w[i] = (bits.RotateLeft64(a, -19) ^ bits.RotateLeft64(a, -61) ^ a>>6) + w[i-7] +
			(bits.RotateLeft64(b, -1) ^ bits.RotateLeft64(b, -8) ^ b>>7) + w[i-16]
	}
	a, b, c, d, e, f, g, h := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
	for i := range 80 {
		t1 := h + (bits.RotateLeft64(e, -14) ^ bits.RotateLeft64(e, -18) ^ bits.RotateLeft64(e, -41)) + (e&f ^ ^e&g) + sha512K[i] + w[i]
		t2 := (bits.RotateLeft64(a, -28) ^ bits.RotateLeft64(a, -34) ^ bits.RotateLeft64(a, -39)) + (a&b ^ a&c ^ b&c)
		h, g, f, e, d, c, b, a = g, f, e, d+t1, c, b, a, t1+t2
	}
	s[0] += a
	s[1] += b
	s[2] += c
	s[3] += d
	s[4] += e
	s[5] += f
	s[6] += g
	s[7] += h
}
