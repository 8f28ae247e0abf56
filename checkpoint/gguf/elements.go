package gguf

import (
	"encoding/binary"
	"math"

	"github.com/entrain-network/entrain/exact8"
)

// A Q8_0 block: its number of elements and its length in bytes.
const (
	block      = exact8.Block
	blockBytes = 2 + block
)

// append appends a row of elements. Blocks are those of exact8 if eight is set.
func (t Type) append(dst []byte, row []float32, eight bool) []byte {
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
			if eight {
				dst = appendBlock8(dst, row[:block])
			} else {
				dst = appendBlock(dst, row[:block])
			}
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

// appendBlock8 appends a block as exact8 quantizes it, so that the file holds the weights that the
// run computed with: powers of two from 2^-24 to 2^15 are exact in binary16. Other blocks, all of
// whose elements are below 2^-18 or which are beyond all reason, are appendBlock's.
func appendBlock8(dst []byte, row []float32) []byte {
	var q [block]int8
	worth := exact8.Quantize(q[:], row)
	if !(worth >= 0x1p-24 && worth <= 0x1p15) {
		return appendBlock(dst, row)
	}
	dst = binary.LittleEndian.AppendUint16(dst, half(worth))
	for _, v := range q {
		dst = append(dst, byte(v))
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
