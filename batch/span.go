package batch

import "github.com/entrain-network/entrain/wire"

// Total returns the number of sequences in the spans: the length of their virtual batch. It panics
// when that is 2^32 or more, which a batch's configuration rules out.
func Total(spans []Span) uint32 {
	n := uint64(0)
	for _, s := range spans {
		n += uint64(s.Count)
	}
	if n > 1<<32-1 {
		panic("batch: batch of 2^32 sequences or more")
	}
	return uint32(n)
}

// Cut returns the spans of the part [from, from+count) of the virtual batch of spans, in its order;
// none if count is 0. It panics when the part goes beyond the batch.
func Cut(spans []Span, from, count uint32) []Span {
	skip, want := uint64(from), uint64(count)
	if skip+want > uint64(Total(spans)) {
		panic("batch: part beyond the batch")
	}
	var part []Span
	for _, s := range spans {
		n := uint64(s.Count)
		if skip >= n {
			skip -= n
			continue
		}
		take := min(n-skip, want)
		part = Join(part, Span{Start: s.Start + skip, Count: uint32(take)})
		skip, want = 0, want-take
	}
	return part
}

// Join appends s to spans, as part of the last one if it continues that; an empty s changes
// nothing.
func Join(spans []Span, s Span) []Span {
	if s.Count == 0 {
		return spans
	}
	if n := len(spans); n > 0 {
		last := &spans[n-1]
		if last.End() == s.Start && uint64(last.Count)+uint64(s.Count) <= 1<<32-1 {
			last.Count += s.Count
			return spans
		}
	}
	return append(spans, s)
}

// SpanBytes is the length of one encoded span.
const SpanBytes = 8 + 4

// Append appends the encoding of spans, drawn in the package comment.
func Append(dst []byte, spans []Span) []byte {
	dst = wire.AppendU32(dst, uint32(len(spans)))
	for _, s := range spans {
		dst = wire.AppendU64(dst, s.Start)
		dst = wire.AppendU32(dst, s.Count)
	}
	return dst
}

// Parse reads at most max spans from r. It fails with wire.ErrTooLong if there are more; with
// wire.ErrOutOfRange if a span is empty or ends beyond 2^64, or the spans together have 2^32
// sequences or more; and with wire.ErrNotCanonical if a span continues the one before, because Join
// would have merged them.
func Parse(r *wire.Reader, max uint32) []Span {
	n := r.U32()
	if n > max {
		r.Fail(wire.ErrTooLong)
	} else if uint64(n)*SpanBytes > uint64(r.Len()) {
		r.Fail(wire.ErrShort)
	}
	if r.Err() != wire.OK || n == 0 {
		return nil
	}
	spans := make([]Span, n)
	total := uint64(0)
	for i := range spans {
		s := Span{Start: r.U64(), Count: r.U32()}
		total += uint64(s.Count)
		if s.Count == 0 || s.End() < s.Start || total > 1<<32-1 {
			r.Fail(wire.ErrOutOfRange)
		}
		if i > 0 && spans[i-1].End() == s.Start {
			r.Fail(wire.ErrNotCanonical)
		}
		spans[i] = s
	}
	if r.Err() != wire.OK {
		return nil
	}
	return spans
}

// Hash returns the hash of a share, to which commitments to its results are bound:
// wire.Sum("entrain/share", encoding).
func Hash(spans []Span) wire.Hash {
	return wire.Sum("entrain/share", Append(nil, spans))
}

// Number returns the number, in the run's order, of sequence i of a share.
func Number(spans []Span, i uint32) (number uint64, ok bool) {
	for _, s := range spans {
		if i < s.Count {
			return s.Start + uint64(i), true
		}
		i -= s.Count
	}
	return 0, false
}
