package wire

// The standard encoding/hex keeps its errors in package variables and needs fmt, neither of which
// replicated packages may have; and it reads upper case, which would give one hash two spellings.

const hexDigits = "0123456789abcdef"

// AppendHex appends b in lower-case hexadecimal digits, two a byte.
func AppendHex(dst, b []byte) []byte {
	for _, v := range b {
		dst = append(dst, hexDigits[v>>4], hexDigits[v&15])
	}
	return dst
}

// DecodeHex fills dst from exactly two lower-case hexadecimal digits a byte. It fails with ErrText
// on anything else, and then leaves dst unchanged.
func DecodeHex(dst []byte, s string) error {
	if uint64(len(s)) != 2*uint64(len(dst)) {
		return ErrText
	}
	for i := range len(s) {
		if hexValue(s[i]) > 15 {
			return ErrText
		}
	}
	for i := range dst {
		dst[i] = hexValue(s[2*i])<<4 | hexValue(s[2*i+1])
	}
	return nil
}

// hexValue returns the value of a lower-case hexadecimal digit, and 255 for any other byte.
func hexValue(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}
