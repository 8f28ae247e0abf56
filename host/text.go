package host

import (
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Error is a constant error.
type Error string

// Error returns the text.
func (e Error) Error() string { return string(e) }

// failure is an error with a cause.
type failure struct {
	text  string
	cause error // nil if there is none
}

func (f *failure) Error() string { return f.text }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.cause }

// failed returns an error of the given parts. An error that is the last part is its cause.
func failed(parts ...any) error {
	cause, _ := parts[len(parts)-1].(error)
	return &failure{text: text(parts...), cause: cause}
}

// text joins parts, which are strings, integers, hashes, keys, errors, or have a String method.
func text(parts ...any) string {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b = append(b, p...)
		case int:
			b = appendDecimal(b, uint64(p)) // lengths and limits are never negative
		case uint8:
			b = appendDecimal(b, uint64(p))
		case uint16:
			b = appendDecimal(b, uint64(p))
		case uint64:
			b = appendDecimal(b, p)
		case key.Public:
			b = wire.AppendHex(b, p[:])
		case wire.Hash:
			b = wire.AppendHex(b, p[:])
		case error:
			b = append(b, p.Error()...)
		case interface{ String() string }:
			b = append(b, p.String()...)
		default:
			panic("host: text of an unknown type")
		}
	}
	return string(b)
}

func appendDecimal(dst []byte, n uint64) []byte {
	if n >= 10 {
		dst = appendDecimal(dst, n/10)
	}
	return append(dst, '0'+byte(n%10))
}

// quote returns s in quotation marks. Bytes that are not printable ASCII, quotation marks and
// backslashes become \xHH.
func quote(s string) string {
	b := []byte{'"'}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			b = wire.AppendHex(append(b, '\\', 'x'), []byte{c})
		} else {
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// same reports whether a and b are equal.
func same(a, b []byte) bool { return string(a) == string(b) }
