package tensor

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Bytes returns the canonical bytes of x, 4*len(x) of them. On a little-endian machine they are x's
// own memory, so that hashing and sending a model copies nothing; on a big-endian machine they are
// a copy. The caller must not write to them, nor keep them while x changes.
func Bytes(x []float32) []byte {
	if !littleEndian() {
		return encode(nil, x)
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

// AppendBytes appends the canonical bytes of x to dst.
func AppendBytes(dst []byte, x []float32) []byte {
	if !littleEndian() {
		return encode(dst, x)
	}
	return append(dst, Bytes(x)...)
}

// SetBytes fills dst with the floats whose canonical bytes are b; every bit pattern is kept, those
// of NaN included. It panics if b does not have exactly 4 bytes for each element of dst.
func SetBytes(dst []float32, b []byte) {
	if len(b) != 4*len(dst) {
		panic("tensor: SetBytes wants 4 bytes for each float32")
	}
	if littleEndian() {
		copy(Bytes(dst), b)
		return
	}
	decode(dst, b)
}

// Fill sets dst to the floats whose canonical bytes read fills its argument with. After an error
// the elements of dst are arbitrary.
func Fill(dst []float32, read func([]byte) error) error {
	if littleEndian() {
		return read(Bytes(dst))
	}
	b := make([]byte, 4*len(dst))
	if err := read(b); err != nil {
		return err
	}
	decode(dst, b)
	return nil
}

// littleEndian is decided when the program is compiled: the compiler folds the load.
func littleEndian() bool {
	return binary.NativeEndian.Uint16([]byte{1, 0}) == 1
}

func encode(dst []byte, x []float32) []byte {
	for _, v := range x {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst
}

func decode(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}
