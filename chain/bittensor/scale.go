package bittensor

import (
	"encoding/binary"
	"errors"
)

// errShort says that an answer ends within a value, or counts more than its bytes can hold.
var errShort = errors.New("the answer is cut short or no SCALE")

// reader reads SCALE, Substrate's encoding: little-endian numbers, and compact ones before whatever
// is counted. After the first fault it returns zeros; err says which.
type reader struct {
	b    []byte
	err  error
	work int // values that were skipped
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b) {
		r.b, r.err = nil, errShort
		return make([]byte, min(max(n, 0), 32))
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) u8() uint8   { return r.take(1)[0] }
func (r *reader) u16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// compact reads a number of one to nine bytes. A larger one is a fault.
func (r *reader) compact() uint64 {
	first := r.u8()
	switch first & 3 {
	case 0:
		return uint64(first >> 2)
	case 1:
		return uint64(first>>2) | uint64(r.u8())<<6
	case 2:
		rest := r.take(3)
		return uint64(first>>2) | uint64(rest[0])<<6 | uint64(rest[1])<<14 | uint64(rest[2])<<22
	}
	n := int(first>>2) + 4
	if n > 8 {
		r.err = errShort
		return 0
	}
	var v uint64
	for i, b := range r.take(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// count reads how many things follow, each of at least one byte.
func (r *reader) count() int {
	n := r.compact()
	if n > uint64(len(r.b)) {
		r.b, r.err = nil, errShort
		return 0
	}
	return int(n)
}

func (r *reader) bytes() []byte { return r.take(r.count()) }
func (r *reader) str() string   { return string(r.bytes()) }

func (r *reader) account() (a Account) {
	copy(a[:], r.take(len(a)))
	return a
}

func appendCompact(dst []byte, v uint64) []byte {
	switch {
	case v < 1<<6:
		return append(dst, byte(v<<2))
	case v < 1<<14:
		return binary.LittleEndian.AppendUint16(dst, uint16(v<<2|1))
	case v < 1<<30:
		return binary.LittleEndian.AppendUint32(dst, uint32(v<<2|2))
	}
	n := 4
	for n < 8 && v>>(8*n) > 0 {
		n++
	}
	dst = append(dst, byte(n-4)<<2|3)
	for i := range n {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

func appendBytes(dst, v []byte) []byte { return append(appendCompact(dst, uint64(len(v))), v...) }

func appendU16s(dst []byte, list []uint16) []byte {
	dst = appendCompact(dst, uint64(len(list)))
	for _, v := range list {
		dst = binary.LittleEndian.AppendUint16(dst, v)
	}
	return dst
}
