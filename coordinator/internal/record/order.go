//go:build !sbf

package record

import "encoding/binary"

// Numbers are little endian.

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func putU16(b []byte, v uint16) { binary.LittleEndian.PutUint16(b, v) }
func putU32(b []byte, v uint32) { binary.LittleEndian.PutUint32(b, v) }
func putU64(b []byte, v uint64) { binary.LittleEndian.PutUint64(b, v) }

// find returns the first of n records of that size, from record i on, that begins with the word v,
// or n if none does.
func find(b []byte, i, n, size, v uint64) uint64 {
	for ; i < n && u64(b[size*i:]) != v; i++ {
	}
	return i
}

// within returns how many of n records of that size begin with a byte from least to most.
func within(b []byte, n, size uint64, least, most uint8) (count uint32) {
	for i := range n {
		if v := b[size*i]; least <= v && v <= most {
			count++
		}
	}
	return count
}

// at returns record i of those of that size, which there is: on Solana's machine nothing checks it.
func at(b []byte, i, size uint64) []byte { return b[size*i : size*(i+1) : size*(i+1)] }

// mark sets the bits in a bitmap of those of n records of that size that do not begin with a number
// of 32 bits that is zero.
func mark(bitmap, b []byte, n, size uint64) {
	for i := range n {
		if u32(b[size*i:]) != 0 {
			bitmap[i>>3] |= 1 << (i & 7)
		}
	}
}

// used returns the first of n records of that size, from record i on, that does not begin with a
// number of 32 bits that is zero, or n if none does.
func used(b []byte, i, n, size uint64) uint64 {
	for ; i < n && u32(b[size*i:]) == 0; i++ {
	}
	return i
}
