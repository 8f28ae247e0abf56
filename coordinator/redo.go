package coordinator

import "github.com/entrain-network/entrain/batch"

// The redo queue holds sequences that were given out and whose results were not accepted. They come back in the next
// batches, before fresh ones. It is a list of RedoLen spans, oldest first.

// Redo returns the spans that wait in the redo queue, oldest first.
func (s State) Redo() []batch.Span {
	spans := make([]batch.Span, s.redoLen())
	for i := range spans {
		spans[i] = s.span(s.l.redo + spanBytes*uint32(i))
	}
	return spans
}

// RedoLost returns how many sequences were never trained because the redo queue was full.
func (s State) RedoLost() uint64 { return getU64(s.b, hRedoLost) }

func (s State) redoLen() uint32 { return getU32(s.b, hRedoLen) }

func (s State) span(at uint32) batch.Span {
	return batch.Span{Start: getU64(s.b, at), Count: getU32(s.b, at+8)}
}

func (s State) putSpan(at uint32, v batch.Span) {
	putU64(s.b, at, v.Start)
	putU32(s.b, at+8, v.Count)
}

// pushRedo appends v to the queue: as part of the last span if it continues that, as a span of its own if there is room,
// else not at all.
func (s State) pushRedo(v batch.Span) {
	n := s.redoLen()
	if n > 0 {
		at := s.l.redo + spanBytes*(n-1)
		last := s.span(at)
		if last.End() == v.Start && uint64(last.Count)+uint64(v.Count) <= 1<<32-1 {
			last.Count += v.Count
			s.putSpan(at, last)
			return
		}
	}
	if n == redoMax {
		putU64(s.b, hRedoLost, s.RedoLost()+uint64(v.Count))
		return
	}
	s.putSpan(s.l.redo+spanBytes*n, v)
	putU32(s.b, hRedoLen, n+1)
}

// popRedo takes up to want sequences off the queue's first span. The queue is not empty.
func (s State) popRedo(want uint32) batch.Span {
	first := s.span(s.l.redo)
	if first.Count > want {
		s.putSpan(s.l.redo, batch.Span{Start: first.Start + uint64(want), Count: first.Count - want})
		return batch.Span{Start: first.Start, Count: want}
	}
	n := s.redoLen() - 1
	queue := s.b[s.l.redo : s.l.redo+redoMax*spanBytes]
	copy(queue, queue[spanBytes:])
	clear(queue[spanBytes*n : spanBytes*(n+1)])
	putU32(s.b, hRedoLen, n)
	return first
}

// takeSpans takes the spans of the next batch: from the redo queue first, the rest fresh.
func (s State) takeSpans(total uint32) []batch.Span {
	var spans []batch.Span
	for total > 0 && s.redoLen() > 0 && uint32(len(spans)) < spansMax-1 {
		v := s.popRedo(total)
		spans = batch.Join(spans, v)
		total -= v.Count
	}
	if total > 0 {
		next := s.DataIndex()
		spans = batch.Join(spans, batch.Span{Start: next, Count: total})
		putU64(s.b, hDataIndex, next+uint64(total))
	}
	return spans
}
