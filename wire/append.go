package wire

import "encoding/binary"

// AppendU8 appends one byte.
func AppendU8(dst []byte, v uint8) []byte { return append(dst, v) }

// AppendU16 appends v in two bytes, little endian.
func AppendU16(dst []byte, v uint16) []byte { return binary.LittleEndian.AppendUint16(dst, v) }

// AppendU32 appends v in four bytes, little endian.
func AppendU32(dst []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(dst, v) }

// AppendU64 appends v in eight bytes, little endian.
func AppendU64(dst []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(dst, v) }

// AppendBool appends 1 for true and 0 for false.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendHash appends the 32 bytes of h.
func AppendHash(dst []byte, h Hash) []byte { return append(dst, h[:]...) }

// AppendVar appends the length of b in four bytes, then b. It panics if the length does not fit,
// which no reader's limit comes near.
func AppendVar(dst, b []byte) []byte {
	if uint64(len(b)) > 1<<32-1 {
		panic("wire: variable field of 4 GiB or more")
	}
	return append(AppendU32(dst, uint32(len(b))), b...)
}

// AppendString is AppendVar for a string.
func AppendString(dst []byte, s string) []byte { return AppendVar(dst, []byte(s)) }
