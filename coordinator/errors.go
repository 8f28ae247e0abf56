package coordinator

// Error is the reason why a message, a configuration or a buffer was refused. The zero value is OK
// and never becomes a Go error.
type Error uint8

// orNil returns e as a Go error, and nil for OK.
func (e Error) orNil() error {
	if e == OK {
		return nil
	}
	return e
}
