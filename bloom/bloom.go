// Package bloom encodes a set of items in a few bits, as a Bloom filter.
//
// A witness reports the commitments it holds as an array of bits, of which each
// item sets a few, chosen by hashing. Has never denies an item that was added; it wrongly confirms
// another one with a probability that Size makes as small as is needed. The rules that make the
// bound hold against people, not only against chance:
//
//   - A filter is salted by the public key of the witness, so what one filter wrongly confirms is
//     independent of the others.
//   - A filter in which more bits are set than its items can set, or more than half, is not
//     Plausible and is refused. Without that a witness could vouch for everything by setting all
//     bits. With it, an item that was not added is confirmed with probability at most
//     (1/2)^Hashes, whatever else is in the filter.
//
// The bits of an item are computed as follows. Let d(j) = wire.Sum("entrain/bloom", U8 length of
// salt, salt,
// item, U8 j) for j = 0, 1, ... Each d(j) gives eight little-endian U32 numbers; number x means bit
// x * Bits >> 32. The first Hashes numbers count. Bit b is bit b mod 8 (least significant first) of
// byte b / 8 of the filter. So for Bits = 64, a number 0x28000000 sets bit 10:
//
//	byte 0    1    2 ... 7
//	     00   04   00    00
//
// The package is replicated (see package wire).
package bloom

import (
	"encoding/binary"
	"math/bits"

	"github.com/entrain-network/entrain/wire"
)

// Params are the dimensions of a filter, the same for all filters of a round. The zero Params are
// not valid; Size makes them.
type Params struct {
	Bits   uint32 // the filter's size, a multiple of 64, at most BitsMax
	Hashes uint8  // how many bits an item sets, at least 1
}

// Bytes returns the length of a filter of these dimensions.
func (p Params) Bytes() int { return int(p.Bits / 8) }

// Filter is the bits of a filter: a view of bytes that may lie in a larger buffer.
type Filter []byte

// New returns an empty filter of the dimensions p.
func New(p Params) Filter { return make(Filter, p.Bytes()) }

// Add puts an item into the filter of the witness known by salt. It panics when the filter is not
// of the dimensions p.
func (f Filter) Add(p Params, salt []byte, item wire.Hash) {
	f.must(p)
	pr := newProbe(salt, item)
	for range p.Hashes {
		b := pr.next(p.Bits)
		f[b>>3] |= 1 << (b & 7)
	}
}

// Has reports whether the filter of the witness known by salt confirms the item: always if it was
// added, and otherwise with probability at most 2^-Hashes if the filter is Plausible. It panics
// when the filter is not of the dimensions p.
func (f Filter) Has(p Params, salt []byte, item wire.Hash) bool {
	f.must(p)
	pr := newProbe(salt, item)
	for range p.Hashes {
		b := pr.next(p.Bits)
		if f[b>>3]>>(b&7)&1 == 0 {
			return false
		}
	}
	return true
}

// Plausible reports whether f can be an honest filter of the dimensions p with at most the given
// number of items: it has the right length, no more bits set than the items can set, and at most
// half of all bits set. An honest filter is always plausible if p is the Size for that number of
// items or more.
func (f Filter) Plausible(p Params, items uint32) bool {
	return p.Bits > 0 && len(f) == p.Bytes() && f.Ones() <= min(uint64(p.Bits)/2, uint64(items)*uint64(p.Hashes))
}

// Ones returns the number of bits set.
func (f Filter) Ones() uint64 {
	n := uint64(0)
	for ; len(f) >= 8; f = f[8:] {
		n += uint64(bits.OnesCount64(binary.LittleEndian.Uint64(f)))
	}
	for _, b := range f {
		n += uint64(bits.OnesCount8(b))
	}
	return n
}

func (f Filter) must(p Params) {
	if p.Bits == 0 || len(f) != p.Bytes() {
		panic("bloom: filter and parameters differ in size")
	}
}

// SaltBytesMax bounds a salt; a public key has 32 bytes.
const SaltBytesMax = 64

// probe enumerates the bits of one item.
type probe struct {
	pre    [1 + SaltBytesMax + 33]byte // the hashed bytes: length of salt, salt, item, j
	n      int                         // length of pre in use
	digest wire.Hash
	at     int // next unused number of digest; 8 when all are used
}

func newProbe(salt []byte, item wire.Hash) probe {
	if len(salt) > SaltBytesMax {
		panic("bloom: salt is too long")
	}
	p := probe{at: 8}
	p.pre[0] = uint8(len(salt))
	p.n = 1 + copy(p.pre[1:], salt)
	p.n += copy(p.pre[p.n:], item[:]) + 1 // the last byte is the digest's number, from 0
	return p
}

// next returns the item's next bit in a filter of size bits. A bit is preferred over another by a
// factor of at most 1 + size/2^32, which the spare bit in Size covers.
func (p *probe) next(size uint32) uint32 {
	if p.at == 8 {
		p.digest = wire.Sum("entrain/bloom", p.pre[:p.n])
		p.pre[p.n-1]++
		p.at = 0
	}
	x := binary.LittleEndian.Uint32(p.digest[4*p.at:])
	p.at++
	return uint32(uint64(x) * uint64(size) >> 32)
}
