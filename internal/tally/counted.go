//go:build counted

package tally

// Enabled reports whether this program counts.
const Enabled = true

var work Work

// Hashed counts n hashed bytes.
func Hashed(n int) { work.Hashed += uint64(n) }

// Signature counts a checked signature.
func Signature() { work.Signatures++ }

// Members counts n places of members.
func Members(n uint32) { work.Members += uint64(n) }

// Take returns what was counted since it was called last.
func Take() Work {
	w := work
	work = Work{}
	return w
}
