//go:build !unix

package httpserve

// Descriptors returns how many files and connections this process may have open: such systems set
// no limit that matters.
func Descriptors() uint64 { return 1 << 20 }
