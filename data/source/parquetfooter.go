package source

import (
	"encoding/binary"
	"errors"
	"io"
)

// checkFooter returns an error if a list or a text of a parquet file's footer is longer than the
// footer, since the library makes it before it reads what is in it. It passes over files that the
// library refuses.
func checkFooter(file io.ReaderAt, size int64) error {
	var end [8]byte // u32 length of the footer | PAR1
	if _, err := file.ReadAt(end[:], size-int64(len(end))); size < int64(len(end)) || err != nil || string(end[4:]) != "PAR1" {
		return nil
	}
	length := int64(binary.LittleEndian.Uint32(end[:]))
	if length > size-int64(len(end)) {
		return nil
	}
	footer := make([]byte, length)
	if _, err := file.ReadAt(footer, size-int64(len(end))-length); err != nil {
		return err
	}
	if c := (compact{footer}); !c.value(compactStruct, 0) {
		return errors.New("its footer is damaged")
	}
	return nil
}

// compact is what is left to pass over of bytes in Thrift's compact protocol.
type compact struct{ left []byte }

// The types of the protocol that are not a number of a fixed size.
const (
	compactTrue   = 1 // of a field; in a list each has a byte
	compactFalse  = 2
	compactI16    = 4
	compactI64    = 6
	compactBytes  = 8
	compactList   = 9
	compactSet    = 10
	compactMap    = 11
	compactStruct = 12
	compactDepth  = 32
)

// value passes over a value, and reports whether it is all there. Its work is in proportion to the
// bytes, of which each value has one at least.
func (c *compact) value(kind byte, depth int) bool {
	if depth > compactDepth {
		return false
	}
	switch kind {
	case compactTrue, compactFalse, 3:
		return c.skip(1)
	case compactI16, 5, compactI64:
		_, ok := c.uvarint()
		return ok
	case 7:
		return c.skip(8)
	case 13:
		return c.skip(16)
	case compactBytes:
		n, ok := c.uvarint()
		return ok && c.skip(n)
	case compactList, compactSet:
		head, ok := c.byte()
		n := uint64(head >> 4)
		if n == 15 && ok {
			n, ok = c.uvarint()
		}
		return ok && c.items(n, depth, head&15)
	case compactMap:
		n, ok := c.uvarint()
		if !ok || n == 0 {
			return ok
		}
		kinds, ok := c.byte()
		return ok && c.items(n, depth, kinds>>4, kinds&15)
	case compactStruct:
		return c.fields(depth)
	}
	return false
}

// items passes over n groups of values of these types.
func (c *compact) items(n uint64, depth int, kinds ...byte) bool {
	if n > uint64(len(c.left)) {
		return false
	}
	for range n {
		for _, kind := range kinds {
			if !c.value(kind, depth+1) {
				return false
			}
		}
	}
	return true
}

// fields passes over the fields of a struct:
//
//	u8 difference to the last field's number << 4 | type, or varint number where that is 0 | value
//
// up to a byte 0.
func (c *compact) fields(depth int) bool {
	for {
		head, ok := c.byte()
		if !ok || head == 0 {
			return ok
		}
		if head>>4 == 0 {
			_, ok = c.uvarint()
		}
		if kind := head & 15; ok && kind != compactTrue && kind != compactFalse {
			ok = c.value(kind, depth+1)
		}
		if !ok {
			return false
		}
	}
}

func (c *compact) skip(n uint64) bool {
	if n > uint64(len(c.left)) {
		return false
	}
	c.left = c.left[n:]
	return true
}

func (c *compact) byte() (b byte, ok bool) {
	if len(c.left) > 0 {
		b = c.left[0]
	}
	return b, c.skip(1)
}

func (c *compact) uvarint() (uint64, bool) {
	u, n := binary.Uvarint(c.left)
	return u, n > 0 && c.skip(uint64(n))
}
