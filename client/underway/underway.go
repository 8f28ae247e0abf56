// Package underway counts requests that are under way, and how many of them began not long ago.
package underway

// A Request is under way until End.
type Request struct {
	sinceMs uint64
	recent  bool
}

// Requests are those of a kind. The zero value has none.
type Requests struct {
	Count  int
	Recent int        // of those, how many count as begun not long ago
	begun  []*Request // the recent ones, in order of time, and some that are over
}

// Begin notes that a request begins, at a time that is not before that of any other.
func (r *Requests) Begin(nowMs uint64) *Request {
	q := &Request{nowMs, true}
	r.Count++
	r.Recent++
	r.begun = append(r.begun, q)
	return q
}

// End notes that a request has ended.
func (r *Requests) End(q *Request) {
	r.Count--
	r.pass(q)
}

// Age has the requests count as recent no more that began at times for which passed reports true.
func (r *Requests) Age(passed func(sinceMs uint64) bool) {
	for len(r.begun) > 0 && (!r.begun[0].recent || passed(r.begun[0].sinceMs)) {
		r.pass(r.begun[0])
		r.begun[0], r.begun = nil, r.begun[1:]
	}
}

func (r *Requests) pass(q *Request) {
	if q.recent {
		q.recent = false
		r.Recent--
	}
}
