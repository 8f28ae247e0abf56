package coordinator

import (
	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator/internal/record"
)

// The redo queue holds sequences that were given out and whose results were not accepted. The next
// batches take them before new sequences. It is a list of RedoLen spans, oldest first.

// Redo returns the spans in the redo queue, oldest first.
func (s State) Redo() []batch.Span {
	spans := make([]batch.Span, s.redoLen())
	for i := range spans {
		spans[i] = span(s.queued(uint32(i)))
	}
	return spans
}

// RedoLost returns how many sequences were never trained because the redo queue was full.
func (s State) RedoLost() uint64 { return s.h().RedoLost() }

func (s State) redoLen() uint32 { return s.h().RedoLen() }

func span(b record.Span) batch.Span { return batch.Span{Start: b.Start(), Count: b.Count()} }

func putSpan(b record.Span, v batch.Span) {
	b.SetStart(v.Start)
	b.SetCount(v.Count)
}

func (s State) queued(n uint32) record.Span { return s.buffer().Queued(n) }

// pushRedo appends v to the queue. It extends the last span if v continues it, or else adds a span
// if there is room. Otherwise the sequences of v are lost and counted in RedoLost.
func (s State) pushRedo(v batch.Span) {
	n := s.redoLen()
	if n > 0 {
		at := s.queued(n - 1)
		last := span(at)
		if last.End() == v.Start && uint64(last.Count)+uint64(v.Count) <= 1<<32-1 {
			last.Count += v.Count
			putSpan(at, last)
			return
		}
	}
	if n == record.RedoMax {
		s.h().SetRedoLost(s.RedoLost() + uint64(v.Count))
		return
	}
	putSpan(s.queued(n), v)
	s.h().SetRedoLen(n + 1)
}

// popRedo removes up to want sequences from the first span of the queue, which must not be empty.
func (s State) popRedo(want uint32) batch.Span {
	first := span(s.queued(0))
	if first.Count > want {
		putSpan(s.queued(0), batch.Span{Start: first.Start + uint64(want), Count: first.Count - want})
		return batch.Span{Start: first.Start, Count: want}
	}
	n := s.redoLen() - 1
	queue := s.b[s.l.Redo : s.l.Redo+record.RedoMax*record.SpanBytes]
	copy(queue, queue[record.SpanBytes:])
	clear(queue[record.SpanBytes*n : record.SpanBytes*(n+1)])
	s.h().SetRedoLen(n)
	return first
}

// takeSpans takes the spans of the next batch, from the redo queue first and then new ones.
func (s State) takeSpans(total uint32) []batch.Span {
	var spans []batch.Span
	for total > 0 && s.redoLen() > 0 && uint32(len(spans)) < record.SpansMax-1 {
		v := s.popRedo(total)
		spans = batch.Join(spans, v)
		total -= v.Count
	}
	if total > 0 {
		next := s.DataIndex()
		spans = batch.Join(spans, batch.Span{Start: next, Count: total})
		s.h().SetDataIndex(next + uint64(total))
	}
	return spans
}
