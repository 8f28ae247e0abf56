package onchain

// An EndedError is the cause with which the context of a chain's host ends when a server on its
// machine has. A member then leaves without asking the chain, which stops as well.
type EndedError struct {
	What string // the server
	Err  error
}

// Error returns which server ended, and why.
func (e *EndedError) Error() string { return e.What + ": " + e.Err.Error() }

// Unwrap returns why it ended.
func (e *EndedError) Unwrap() error { return e.Err }
