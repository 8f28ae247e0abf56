package wire

import "encoding/binary"

// Reader takes values off the front of a byte slice. After the first failure every method returns
// zero values and the failure stays, so a parser checks once:
//
//	r := wire.NewReader(b)
//	m := Ready{Epoch: r.U32(), Params: r.Hash()}
//	return m, r.Done().OrNil()
//
// The zero Reader reads the empty input.
type Reader struct {
	b   []byte // the unread input
	err Error
}

// NewReader returns a Reader of b. It keeps b, and so do the slices returned by Bytes, Var and
// Rest: they are views.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Err returns the first failure, or OK.
func (r *Reader) Err() Error { return r.err }

// Done ends the reading. It returns the first failure, ErrTrailing if input is left, or OK.
func (r *Reader) Done() Error {
	if r.err == OK && len(r.b) > 0 {
		r.Fail(ErrTrailing)
	}
	return r.err
}

// Fail records the failure e unless there was one before. Parsers use it for conditions that only
// they can check, such as a range.
func (r *Reader) Fail(e Error) {
	if r.err == OK {
		r.err = e
		r.b = nil
	}
}

// Len returns how many bytes are left; 0 after a failure. A parser of a list checks it against the
// list's length times the least size of an element before it allocates.
func (r *Reader) Len() int { return len(r.b) }

// Bytes takes the next n bytes and returns a view of them, nil after a failure. A negative n fails
// with ErrOutOfRange.
func (r *Reader) Bytes(n int) []byte {
	if n < 0 {
		r.Fail(ErrOutOfRange)
	} else if n > len(r.b) {
		r.Fail(ErrShort)
	}
	if r.err != OK {
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// U8 takes one byte.
func (r *Reader) U8() uint8 {
	if b := r.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// U16 takes two bytes.
func (r *Reader) U16() uint16 {
	if b := r.Bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

// U32 takes four bytes.
func (r *Reader) U32() uint32 {
	if b := r.Bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// U64 takes eight bytes.
func (r *Reader) U64() uint64 {
	if b := r.Bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Bool takes one byte, which must be 0 or 1; another fails with ErrNotCanonical.
func (r *Reader) Bool() bool {
	v := r.U8()
	if v > 1 {
		r.Fail(ErrNotCanonical)
	}
	return v == 1
}

// Hash takes 32 bytes.
func (r *Reader) Hash() Hash {
	var h Hash
	copy(h[:], r.Bytes(len(h)))
	return h
}

// Var takes a length and that many bytes, and returns a view of them; a length above max fails with
// ErrTooLong.
func (r *Reader) Var(max int) []byte {
	n := r.U32()
	if max < 0 || uint64(n) > uint64(max) {
		r.Fail(ErrTooLong)
		return nil
	}
	return r.Bytes(int(n))
}

// String is Var for a string, which is a copy.
func (r *Reader) String(max int) string { return string(r.Var(max)) }

// Rest takes all remaining bytes and returns a view of them, nil after a failure.
func (r *Reader) Rest() []byte { return r.Bytes(len(r.b)) }
