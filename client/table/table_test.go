package table

import "testing"

// TestAllAreFound sets the lists of a third of the indexes, first few and then many, and replaces one.
func TestAllAreFound(t *testing.T) {
	const n = 6 * manyMin
	var table Table[uint32, uint32]
	for i := uint32(0); i < n; i += 3 {
		table.Set(i, []uint32{i}, n)
		table.Set(0, []uint32{i, i}, n)
		found, all := 0, 0
		for k := range uint32(n + 1) {
			if list := table.Of(k); len(list) > 0 {
				found++
				if k > 0 && list[0] != k || k == 0 && (len(list) != 2 || list[0] != i) {
					t.Fatalf("after %d the list of %d is %v", i, k, list)
				}
			}
		}
		table.Each(func(list []uint32) { all += min(len(list), 1) })
		if want := int(i/3) + 1; found != want || all != want {
			t.Fatalf("after %d there are %d lists, and Each has %d, want %d", i, found, all, want)
		}
	}
	if table.many == nil {
		t.Error("the table has no table: the test shows nothing")
	}
}
