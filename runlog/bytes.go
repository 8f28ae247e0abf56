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

// pen writes values.
type pen struct{ b []byte }

func (p *pen) u8(v uint8)    { p.b = append(p.b, v) }
func (p *pen) uint(v uint64) { p.b = binary.AppendUvarint(p.b, v) }

// i16 writes a signed number. The sign is the lowest bit, so that small numbers are short.
func (p *pen) i16(v int16) { p.uint(uint64(uint16(v<<1 ^ v>>15))) }

func (p *pen) bool(v bool) {
	if v {
		p.u8(1)
	} else {
		p.u8(0)
	}
}

func (p *pen) f32(v float32) { p.b = binary.LittleEndian.AppendUint32(p.b, math.Float32bits(v)) }
func (p *pen) f64(v float64) { p.b = binary.LittleEndian.AppendUint64(p.b, math.Float64bits(v)) }

// text writes twice the length, plus 1 if the bytes of a hexadecimal text follow.
func (p *pen) text(s string) {
	s = s[:min(len(s), TextBytesMax)]
	if raw, ok := unhex(s); ok {
		p.uint(uint64(len(raw))<<1 | 1)
		p.b = append(p.b, raw...)
		return
	}
	p.uint(uint64(len(s)) << 1)
	p.b = append(p.b, s...)
}

// set writes bytes as runs of equal ones, each (length, byte): sets of members are mostly full or
// mostly empty.
func (p *pen) set(s Set) {
	p.uint(uint64(len(s)))
	for i := 0; i < len(s); {
		n := 1
		for i+n < len(s) && s[i+n] == s[i] {
			n++
		}
		p.uint(uint64(n))
		p.u8(s[i])
		i += n
	}
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

// eye reads what pen wrote, and refuses everything else. After a failure it returns zeros.
type eye struct {
	b   []byte
	bad bool
}

func (e *eye) fail() {
	e.bad, e.b = true, nil
}

func (e *eye) take(n uint64) []byte {
	if n > uint64(len(e.b)) {
		e.fail()
		return nil
	}
	v := e.b[:n]
	e.b = e.b[n:]
	return v
}

func (e *eye) u8() uint8 {
	if v := e.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (e *eye) bool() bool {
	v := e.u8()
	if v > 1 {
		e.fail()
	}
	return v == 1
}

// uint reads a number of at most max.
func (e *eye) uint(max uint64) uint64 {
	v, n := binary.Uvarint(e.b)
	if n <= 0 || v > max || n > 1 && e.b[n-1] == 0 { // cut short, too large, or too long
		e.fail()
		return 0
	}
	e.b = e.b[n:]
	return v
}

func (e *eye) i16() int16 {
	u := uint16(e.uint(math.MaxUint16))
	return int16(u>>1) ^ -int16(u&1)
}

func (e *eye) f32() float32 {
	if v := e.take(4); v != nil {
		return math.Float32frombits(binary.LittleEndian.Uint32(v))
	}
	return 0
}

func (e *eye) f64() float64 {
	if v := e.take(8); v != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(v))
	}
	return 0
}

func (e *eye) text() string {
	n := e.uint(2*TextBytesMax + 1)
	raw := e.take(n >> 1)
	if e.bad {
		return ""
	}
	if n&1 == 1 {
		s := hex.EncodeToString(raw)
		if len(s) < 16 || len(s) > TextBytesMax {
			e.fail()
		}
		return s
	}
	s := string(raw)
	if _, ok := unhex(s); ok || len(s) > TextBytesMax {
		e.fail()
	}
	return s
}

func (e *eye) set() Set {
	n := e.uint((membersMax + 7) / 8)
	s := make(Set, 0, n)
	for uint64(len(s)) < n {
		run := e.uint(n - uint64(len(s)))
		v := e.u8()
		if run == 0 || len(s) > 0 && s[len(s)-1] == v {
			e.fail()
		}
		if e.bad {
			return nil
		}
		for range run {
			s = append(s, v)
		}
	}
	return s
}
