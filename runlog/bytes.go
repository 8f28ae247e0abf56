package runlog

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
)

// The alphabet of the format: numbers as LEB128 in the fewest bytes, floats as their bits, texts
// with their length, hexadecimal texts (hashes, keys) as the bytes they stand for. Every value has
// one encoding.

// errFormat reports bytes that are not a record.
var errFormat = errors.New("not in the format")

// stream writes values, or reads them if reading is set. Each method takes a pointer to the value,
// which only reading changes. Reading refuses what writing would not have written; after a failure
// it gives zeros.
type stream struct {
	b       []byte // what was written, or what is left to read
	reading bool
	bad     bool
}

func (s *stream) fail() { s.bad, s.b = true, nil }

// bytes writes v, or fills it.
func (s *stream) bytes(v []byte) {
	switch {
	case !s.reading:
		s.b = append(s.b, v...)
	case len(v) > len(s.b):
		s.fail()
	default:
		s.b = s.b[copy(v, s.b):]
	}
}

// take reads n bytes, which are those of the stream; nil if there are fewer.
func (s *stream) take(n uint64) []byte {
	if n > uint64(len(s.b)) {
		s.fail()
		return nil
	}
	v := s.b[:n]
	s.b = s.b[n:]
	return v
}

// uint takes a number of at most max.
func (s *stream) uint(v *uint64, max uint64) {
	if !s.reading {
		s.b = binary.AppendUvarint(s.b, *v)
		return
	}
	u, n := binary.Uvarint(s.b)
	if n <= 0 || u > max || n > 1 && s.b[n-1] == 0 { // cut short, too large, or too long
		s.fail()
		u, n = 0, 0
	}
	*v, s.b = u, s.b[n:]
}

// int16 takes a signed number. The sign is the lowest bit, so that small numbers are short.
func (s *stream) int16(v *int16) {
	u := uint64(uint16(*v<<1 ^ *v>>15))
	if s.uint(&u, math.MaxUint16); s.reading {
		*v = int16(u>>1) ^ -int16(u&1)
	}
}

func (s *stream) bool(v *bool) {
	n := uint64(0)
	if *v {
		n = 1
	}
	if s.uint(&n, 1); s.reading {
		*v = n == 1
	}
}

// float takes a *float32 or a *float64.
func (s *stream) float(v any) {
	if !s.reading {
		s.b, _ = binary.Append(s.b, binary.LittleEndian, v) // never fails for a float
	} else if n, err := binary.Decode(s.b, binary.LittleEndian, v); err == nil {
		s.b = s.b[n:]
	} else {
		s.fail()
	}
}

// text takes twice the length, plus 1 if the bytes of a hexadecimal text follow.
func (s *stream) text(v *string) {
	if s.reading {
		*v = s.readText()
		return
	}
	text := (*v)[:min(len(*v), textBytesMax)]
	raw, hexadecimal := unhex(text)
	n := uint64(len(text)) << 1
	if hexadecimal {
		n, text = uint64(len(raw))<<1|1, string(raw)
	}
	s.uint(&n, 0)
	s.b = append(s.b, text...)
}

func (s *stream) readText() string {
	var n uint64
	s.uint(&n, 2*textBytesMax+1)
	text := string(s.take(n >> 1))
	if n&1 == 1 {
		text = hex.EncodeToString([]byte(text))
	}
	if _, ok := unhex(text); ok != (n&1 == 1) || len(text) > textBytesMax {
		s.fail()
	}
	if s.bad {
		return ""
	}
	return text
}

// set takes bytes as runs of equal ones, each (length, byte): sets of members are mostly full or
// mostly empty.
func (s *stream) set(v *Set) {
	if s.reading {
		*v = s.readSet()
		return
	}
	n := uint64(len(*v))
	s.uint(&n, 0)
	for rest := *v; len(rest) > 0; {
		n := uint64(1)
		for n < uint64(len(rest)) && rest[n] == rest[0] {
			n++
		}
		s.uint(&n, 0)
		s.bytes(rest[:1])
		rest = rest[n:]
	}
}

func (s *stream) readSet() Set {
	var n, run uint64
	s.uint(&n, (membersMax+7)/8)
	v := make(Set, 0, n)
	for uint64(len(v)) < n {
		s.uint(&run, n-uint64(len(v)))
		var b [1]byte
		s.bytes(b[:])
		if run == 0 || len(v) > 0 && v[len(v)-1] == b[0] {
			s.fail()
		}
		if s.bad {
			return nil
		}
		for range run {
			v = append(v, b[0])
		}
	}
	return v
}

// unhex returns the bytes of a text of at least 16 hexadecimal digits. For shorter ones there is
// nothing to gain.
func unhex(s string) ([]byte, bool) {
	if len(s) < 16 || len(s)%2 != 0 {
		return nil, false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return nil, false
		}
	}
	raw, err := hex.DecodeString(s)
	return raw, err == nil
}
