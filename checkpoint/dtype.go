package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/entrain-network/entrain/tensor"
)

// A DType is the encoding of a tensor's elements in a file.
type DType uint8

// The types that can be read. F32 and BF16 can also be written.
const (
	F32  DType = iota + 1 // IEEE-754 binary32: exactly the model
	BF16                  // the upper half of binary32, rounded to nearest, ties to even
	F16                   // IEEE-754 binary16
)

// String returns the name used in safetensors headers.
func (d DType) String() string {
	switch d {
	case F32:
		return "F32"
	case BF16:
		return "BF16"
	case F16:
		return "F16"
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// torch returns the name used in config.json.
func (d DType) torch() string {
	switch d {
	case BF16:
		return "bfloat16"
	case F16:
		return "float16"
	}
	return "float32"
}

// size returns the number of bytes of an element.
func (d DType) size() uint64 {
	if d == F32 {
		return 4
	}
	return 2
}

// parseDType is the inverse of String.
func parseDType(s string) (DType, error) {
	for _, d := range []DType{F32, BF16, F16} {
		if d.String() == s {
			return d, nil
		}
	}
	return 0, fmt.Errorf("dtype %q is not supported: convert the file to F32, BF16 or F16", s)
}

// decode sets dst to the elements in b.
func (d DType) decode(dst []float32, b []byte) {
	switch d {
	case F32:
		tensor.SetBytes(dst, b)
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
		}
	case F16:
		for i := range dst {
			dst[i] = halfToFloat(binary.LittleEndian.Uint16(b[2*i:]))
		}
	default:
		panic("checkpoint: decoding of " + d.String())
	}
}

// appendBF16 appends x, rounded.
func appendBF16(dst []byte, x []float32) []byte {
	for _, v := range x {
		dst = binary.LittleEndian.AppendUint16(dst, floatToBF16(v))
	}
	return dst
}

// floatToBF16 rounds to nearest, ties to even, as PyTorch does. A NaN stays a NaN even if its
// payload is only in the dropped half.
func floatToBF16(v float32) uint16 {
	bits := math.Float32bits(v)
	if v != v {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// halfToFloat widens a binary16, which is exact.
func halfToFloat(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exponent := uint32(h >> 10 & 0x1f)
	fraction := uint32(h & 0x3ff)
	switch exponent {
	case 0: // zero or subnormal: fraction * 2^-24, a float32 without rounding
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*(1.0/(1<<24))))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
