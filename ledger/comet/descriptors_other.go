//go:build !unix

package comet

// descriptors returns how many files and connections this process may have open: such systems set
// no limit that matters.
func descriptors() uint64 { return 4 * connsMax }
