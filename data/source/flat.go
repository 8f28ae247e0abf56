package source

import "encoding/binary"

// flat reads FlatBuffers, in which Arrow describes its tables. It never reads beyond the bytes:
// where they lead there, it reads zeros and bad is set.
type flat struct {
	b   []byte
	bad bool
}

// uint returns the little-endian integer of n bytes at i.
func (f *flat) uint(i, n int) uint64 {
	if i < 0 || i > len(f.b)-n {
		f.bad = true
		return 0
	}
	var word [8]byte
	copy(word[:], f.b[i:i+n])
	return binary.LittleEndian.Uint64(word[:])
}

// follow returns where the offset at i leads to.
func (f *flat) follow(i int) int { return i + int(uint32(f.uint(i, 4))) }

// field returns where field number n of a table is, or 0 if the table does not have it.
func (f *flat) field(table, n int) int {
	layout := table - int(int32(f.uint(table, 4)))
	if slot := 4 + 2*n; slot+2 <= int(f.uint(layout, 2)) {
		if at := int(f.uint(layout+slot, 2)); at != 0 {
			return table + at
		}
	}
	return 0
}

// number returns a field of a table that is an integer of n bytes, or 0.
func (f *flat) number(table, field, n int) uint64 {
	if at := f.field(table, field); at != 0 {
		return f.uint(at, n)
	}
	return 0
}

// table returns the table in a field, or 0.
func (f *flat) table(table, field int) int {
	if at := f.field(table, field); at != 0 {
		return f.follow(at)
	}
	return 0
}

// list returns where the items of a field's vector begin, and their number: each has size bytes.
func (f *flat) list(table, field, size int) (at, n int) {
	at = f.table(table, field)
	if at == 0 {
		return 0, 0
	}
	n = int(uint32(f.uint(at, 4)))
	if f.bad || n > (len(f.b)-at-4)/size {
		f.bad = true
		return 0, 0
	}
	return at + 4, n
}

// text returns a field that is a text of at most most bytes.
func (f *flat) text(table, field, most int) string {
	at, n := f.list(table, field, 1)
	if n > most {
		f.bad = true
		return ""
	}
	return string(f.b[at : at+n])
}
