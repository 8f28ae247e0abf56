package wire

// Error is the reason why bytes were refused. Replicated packages report errors as such small
// codes, which need neither memory nor package variables. The zero value is OK and never becomes a
// Go error (see OrNil).
type Error uint8

// The reasons for refusing bytes. The numbers are stable: receipts of hosts carry them.
const (
	OK                Error = 0 // no error
	ErrShort          Error = 1 // the input ends inside a value
	ErrTrailing       Error = 2 // the input continues after its last value
	ErrTooLong        Error = 3 // a length exceeds its limit
	ErrNotCanonical   Error = 4 // the value has another, canonical encoding
	ErrUnknownKind    Error = 5 // a tag or enumeration has no such value
	ErrUnknownVersion Error = 6 // a format of another version
	ErrOutOfRange     Error = 7 // a number outside its stated range
	ErrText           Error = 8 // text that is not hexadecimal of the right length
)

// Error says what is wrong with the input. It implements the error interface.
func (e Error) Error() string {
	switch e {
	case OK:
		return "ok"
	case ErrShort:
		return "input ends inside a value"
	case ErrTrailing:
		return "input continues after its last value"
	case ErrTooLong:
		return "length exceeds its limit"
	case ErrNotCanonical:
		return "value is not in its canonical form"
	case ErrUnknownKind:
		return "unknown kind of value"
	case ErrUnknownVersion:
		return "unknown version of the format"
	case ErrOutOfRange:
		return "number outside its range"
	case ErrText:
		return "text is not lower-case hexadecimal of the expected length"
	}
	return "unknown encoding error"
}

// OrNil returns e as a Go error, and nil for OK. An Error of value OK stored in an error interface
// would not be nil, so functions that return error end with it: return r.Done().OrNil().
func (e Error) OrNil() error {
	if e == OK {
		return nil
	}
	return e
}
