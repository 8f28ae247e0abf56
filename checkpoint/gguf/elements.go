package gguf

import (
	"encoding/binary"
	"math"
)

// A Q8_0 block: its number of elements and its length in bytes.
const (
	block      = 32
	blockBytes = 2 + block
)

// append appends a row of elements.
func (t Type) append(dst []byte, row []float32) []byte {
	switch t {
	case F16:
		for _, v := range row {
			dst = binary.LittleEndian.AppendUint16(dst, half(v))
		}
	case BF16:
		for _, v := range row {
			dst = binary.LittleEndian.AppendUint16(dst, brain(v))
		}
	case Q8_0:
		for ; len(row) > 0; row = row[block:] {
			dst = appendBlock(dst, row[:block])
		}
	default:
		for _, v := range row {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	}
	return dst
}

// appendBlock appends a block as ggml's quantize_row_q8_0_ref makes it: the scale is the largest
// magnitude / 127; the elements are divided by the scale and rounded to nearest, ties away from
// zero.
func appendBlock(dst []byte, row []float32) []byte {
	var most float32
	for _, v := range row {
		most = max(most, float32(math.Abs(float64(v))))
	}
	scale := most / 127
	dst = binary.LittleEndian.AppendUint16(dst, half(scale))
	var inverse float32
	if scale != 0 {
		inverse = 1 / scale
	}
	for _, v := range row {
		dst = append(dst, byte(int8(math.Round(float64(float32(v*inverse))))))
	}
	return dst
}

// brain rounds to bfloat16, to nearest, ties to even. Parameters are finite.
func brain(v float32) uint16 {
	b := math.Float32bits(v)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// half rounds to binary16, to nearest, ties to even; values that are too large become infinite.
// Parameters are finite.
func half(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b >= 0x477ff000: // half way from the largest number, 65504, to 65536
		return sign | 0x7c00
	case b < 0x38800000: // below 2^-14, the smallest normal number: multiples of 2^-24
		return sign | uint16(math.RoundToEven(math.Ldexp(float64(math.Float32frombits(b)), 24)))
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}
