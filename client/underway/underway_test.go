package underway

import "testing"

// TestRequestsAgeAndEnd begins four requests, of which one ends while it is recent and one after.
func TestRequestsAgeAndEnd(t *testing.T) {
	var r Requests
	want := func(count, recent int) {
		t.Helper()
		if r.Count != count || r.Recent != recent {
			t.Errorf("%d requests, %d of them recent, want %d and %d", r.Count, r.Recent, count, recent)
		}
	}
	before := func(ms uint64) func(uint64) bool { return func(since uint64) bool { return since < ms } }
	first, second := r.Begin(10), r.Begin(20)
	r.Begin(20)
	want(3, 3)
	r.End(second)
	want(2, 2)
	r.Age(before(15))
	want(2, 1)
	r.End(first)
	want(1, 1)
	r.Begin(30)
	r.Age(before(25))
	want(2, 1)
	r.Age(before(100))
	want(2, 0)
}
