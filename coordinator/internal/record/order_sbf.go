//go:build sbf

package record

import "unsafe"

// Solana's machine is little endian, and reads numbers anywhere in one instruction. Its compiler
// would read a byte at a time.

func u16(b []byte) uint16 { return *(*uint16)(unsafe.Pointer((*[2]byte)(b))) }
func u32(b []byte) uint32 { return *(*uint32)(unsafe.Pointer((*[4]byte)(b))) }
func u64(b []byte) uint64 { return *(*uint64)(unsafe.Pointer((*[8]byte)(b))) }

func putU16(b []byte, v uint16) { *(*uint16)(unsafe.Pointer((*[2]byte)(b))) = v }
func putU32(b []byte, v uint32) { *(*uint32)(unsafe.Pointer((*[4]byte)(b))) = v }
func putU64(b []byte, v uint64) { *(*uint64)(unsafe.Pointer((*[8]byte)(b))) = v }

// find is that of other machines, without a check of each record's bounds.
func find(b []byte, i, n, size, v uint64) uint64 {
	if i >= n {
		return n
	}
	p, end := unsafe.Pointer(&b[size*i]), unsafe.Pointer(&b[size*(n-1) : size*n][0])
	for ; *(*uint64)(p) != v; p = unsafe.Add(p, size) {
		if p == end {
			return n
		}
		i++
	}
	return i
}

// within is that of other machines, without a check of each record's bounds.
func within(b []byte, n, size uint64, least, most uint8) (count uint32) {
	if n == 0 {
		return 0
	}
	end := unsafe.Pointer(&b[size*(n-1) : size*n][0])
	for p := unsafe.Pointer(&b[0]); ; p = unsafe.Add(p, size) {
		if *(*uint8)(p)-least <= most-least {
			count++
		}
		if p == end {
			return count
		}
	}
}

// at is that of other machines, without a check of bounds.
func at(b []byte, i, size uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), size*i)), size)
}

// mark is that of other machines, without a check of each record's bounds.
func mark(bitmap, b []byte, n, size uint64) {
	if n == 0 {
		return
	}
	p, _, to := unsafe.Pointer(&b[0]), b[:size*n], unsafe.Pointer(&bitmap[:(n+7)/8][0])
	for i := range n {
		if *(*uint32)(p) != 0 {
			*(*uint8)(unsafe.Add(to, i>>3)) |= 1 << (i & 7)
		}
		p = unsafe.Add(p, size)
	}
}

// used is that of other machines, without a check of each record's bounds.
func used(b []byte, i, n, size uint64) uint64 {
	if i >= n {
		return n
	}
	p, end := unsafe.Pointer(&b[size*i]), unsafe.Pointer(&b[size*(n-1) : size*n][0])
	for ; *(*uint32)(p) == 0; p = unsafe.Add(p, size) {
		if p == end {
			return n
		}
		i++
	}
	return i
}
