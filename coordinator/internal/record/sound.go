package record

import "math/bits"

// The parts of coordinator.Open that need nothing but a buffer: what its rules can have written.

// RedoOK checks the redo queue.
func (b Buffer) RedoOK() bool {
	n := b.Header().RedoLen()
	if n > RedoMax {
		return false
	}
	for k := range n {
		if !b.Queued(k).ok() {
			return false
		}
	}
	return Zero(b.B[b.Redo+SpanBytes*n : b.Ring])
}

func (s Span) ok() bool { return s.Count() > 0 && s.Start() <= SequencesMax }

// Sequences returns how many sequences a round's batch has. It is false if its spans cannot occur.
func (r Slot) Sequences() (total uint64, ok bool) {
	n := r.SpansLen()
	if n > SpansMax {
		return 0, false
	}
	for k := range uint32(n) {
		v := r.Span(k)
		if !v.ok() {
			return 0, false
		}
		total += uint64(v.Count())
	}
	return total, true
}

// SetsOK checks a round's sets of members.
func (b Buffer) SetsOK(r Slot) bool {
	active, expected, accepted := r[b.Active:][:b.Bitmap], r[b.Expected:][:b.Bitmap], r[b.Accepted:][:b.Bitmap]
	for i := range active {
		if expected[i]&^active[i] != 0 || accepted[i]&^expected[i] != 0 {
			return false
		}
	}
	for i := b.Header().Count(); i < Member(8*b.Bitmap); i++ {
		if active[i>>3]>>(i&7)&1 == 1 {
			return false
		}
	}
	want := min(r.Batch(), r.ActiveLen())
	if Ones(active) != r.ActiveLen() || r.ActiveLen() == 0 || r.ExpectedLen() != want || Ones(expected) != want {
		return false
	}
	for _, n := range r[b.Counts:][:b.Members] {
		if uint32(n) > b.Witnesses {
			return false
		}
	}
	return Ones(accepted) == r.AcceptedLen() && (r.Final() || r.AcceptedLen() == 0)
}

// ReportsOK checks a round's witnesses and what they reported.
func (b Buffer) ReportsOK(r Slot) bool {
	w, active := uint32(r.ElectedLen()), r[b.Active:][:b.Bitmap]
	if w > b.Witnesses {
		return false
	}
	reports, completes := uint8(0), uint8(0)
	for p := range b.Witnesses {
		v, i := b.Report(r, p), b.Elect(r, p).Member()
		unused := Zero(v) && i == 0
		elected := i < Member(8*b.Bitmap) && active[i>>3]>>(i&7)&1 == 1
		if !v.WellFormed() || v.Complete() && !v.Reported() || p >= w && !unused || p < w && !elected {
			return false
		}
		if v.Reported() {
			reports++
		}
		if v.Complete() {
			completes++
		}
	}
	return reports == r.Reports() && completes == r.Completes()
}

// SharesOK reports whether only active members have speeds, only expected members have shares, and
// the shares lie within the batch and add up to it.
func (b Buffer) SharesOK(r Slot) bool {
	if !b.Speeds {
		return true
	}
	total, active, expected := uint64(0), r[b.Active:][:b.Bitmap], r[b.Expected:][:b.Bitmap]
	for i := range Member(b.Members) {
		at := b.Share(r, i)
		from, count := at.From(), at.Count()
		isActive, isExpected := active[i>>3]>>(i&7)&1 == 1, expected[i>>3]>>(i&7)&1 == 1
		switch {
		case !isActive && at.Speed() != 0, isExpected != (count > 0), count == 0 && from > 0:
			return false
		case uint64(from)+uint64(count) > uint64(r.Batch()):
			return false
		}
		total += uint64(count)
	}
	return total == uint64(r.Batch())
}

// Ones returns how many bits of a bitmap are set.
func Ones(bitmap []byte) uint32 {
	n := uint32(0)
	for _, b := range bitmap {
		n += uint32(bits.OnesCount8(b))
	}
	return n
}

// Merge adds the members of one bitmap to another.
func Merge(to, from []byte) {
	for ; len(from) >= 8; to, from = to[8:], from[8:] {
		putU64(to, u64(to)|u64(from))
	}
	for k, b := range from {
		to[k] |= b
	}
}

// TokensOK checks that the escrow is the sum of its parts, and within TokensMax.
func (b Buffer) TokensOK() bool {
	sum := uint64(0)
	ok := addTokens(&sum, b.Header().Treasury())
	for i := range b.Header().Count() {
		v := b.Place(i)
		ok = ok && addTokens(&sum, v.Stake(), v.Balance(), v.Unvested())
	}
	for k := range 2 * b.Validators {
		v := b.Seat(k) // or a bench
		ok = ok && addTokens(&sum, v.Stake(), v.Balance())
	}
	return ok && sum == b.Header().Escrow()
}

// addTokens adds parts to a sum, and reports whether it stays within TokensMax.
func addTokens(sum *uint64, parts ...uint64) bool {
	for _, v := range parts {
		if v > TokensMax-*sum {
			return false
		}
		*sum += v
	}
	return true
}
