// Package tally counts the work of replicated code: bytes hashed, signatures checked, places of
// members looked at. It counts only in programs built with the tag counted, which measure what
// messages cost (package lab/costs). Elsewhere its functions are empty, and the compiler drops the
// calls.
//
// It counts for one goroutine.
package tally

// Work is what was done since the last Take.
type Work struct {
	Hashed     uint64 // bytes
	Signatures uint64 // checked
	Members    uint64 // places of a run's table of members that were looked at
}
