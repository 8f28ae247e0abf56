package p2p

import "testing"

// ShortLists has the leaf lists of more than whole chunks travel in parts of part leaves, a power of
// two, until the test ends.
func ShortLists(t testing.TB, whole, part uint32) {
	before := lists
	lists.whole, lists.part = whole, part
	t.Cleanup(func() { lists = before })
}
