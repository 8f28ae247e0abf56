package coordinator

import (
	"slices"
	"testing"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator/internal/record"
)

func redoState(t *testing.T) State {
	t.Helper()
	s, err := New(Limits{Members: 4, Witnesses: 2}, testConfig(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRedoQueueJoinsNeighbours(t *testing.T) {
	s := redoState(t)
	for _, v := range []batch.Span{{Start: 10, Count: 2}, {Start: 12, Count: 3}, {Start: 20, Count: 1}, {Start: 15, Count: 1}} {
		s.pushRedo(v)
	}
	want := []batch.Span{{Start: 10, Count: 5}, {Start: 20, Count: 1}, {Start: 15, Count: 1}}
	if got := s.Redo(); !slices.Equal(got, want) {
		t.Errorf("queue holds %v, want %v", got, want)
	}
	// Spans that together would count too far stay apart.
	s.pushRedo(batch.Span{Start: 16, Count: 1<<32 - 1})
	if got := s.Redo(); len(got) != 4 {
		t.Errorf("queue holds %v, want the large span apart", got)
	}
}

func TestFullRedoQueueCountsWhatIsLost(t *testing.T) {
	s := redoState(t)
	for i := range uint64(record.RedoMax) {
		s.pushRedo(batch.Span{Start: 10 * i, Count: 2})
	}
	s.pushRedo(batch.Span{Start: 10*(record.RedoMax-1) + 2, Count: 3}) // continues the last span
	s.pushRedo(batch.Span{Start: 5000, Count: 7})
	s.pushRedo(batch.Span{Start: 5007, Count: 4})
	if s.RedoLost() != 11 {
		t.Errorf("lost %d sequences, want 11", s.RedoLost())
	}
	if got := s.Redo(); len(got) != record.RedoMax || got[record.RedoMax-1].Count != 5 {
		t.Errorf("queue ends with %v, want a span of 5", got[len(got)-1])
	}
	if _, err := Open(s.Bytes()); err != nil {
		t.Errorf("a state with a full queue does not open: %v", err)
	}
}

func TestBatchesTakeFromTheQueueFirst(t *testing.T) {
	s := redoState(t)
	s.h().SetDataIndex(1000)
	for i := range uint64(10) {
		s.pushRedo(batch.Span{Start: 10 * i, Count: 2})
	}
	// Seven spans of the queue at most, the rest fresh.
	first := s.takeSpans(20)
	if len(first) != record.SpansMax || first[6] != (batch.Span{Start: 60, Count: 2}) || first[7] != (batch.Span{Start: 1000, Count: 6}) {
		t.Errorf("first batch is %v", first)
	}
	// A span is split when the batch needs no more.
	second := s.takeSpans(3)
	if want := []batch.Span{{Start: 70, Count: 2}, {Start: 80, Count: 1}}; !slices.Equal(second, want) {
		t.Errorf("second batch is %v, want %v", second, want)
	}
	if want := []batch.Span{{Start: 81, Count: 1}, {Start: 90, Count: 2}}; !slices.Equal(s.Redo(), want) {
		t.Errorf("queue holds %v, want %v", s.Redo(), want)
	}
	if s.DataIndex() != 1006 {
		t.Errorf("data index is %d, want 1006", s.DataIndex())
	}
	if !record.Zero(s.b[s.l.Redo+2*record.SpanBytes : s.l.Ring]) {
		t.Error("spans taken off the queue left bytes behind")
	}
}

func TestBatchRamp(t *testing.T) {
	for _, c := range []struct {
		start, end, tokens uint32 // tokens a sequence
		ramp, index        uint64
		want               uint32
	}{
		{8, 8, 16, 0, 0, 8},
		{8, 16, 16, 0, 0, 16},
		{8, 16, 16, 1600, 0, 8},
		{8, 16, 16, 1600, 50, 12},
		{8, 16, 16, 1600, 99, 15},
		{8, 16, 16, 1600, 100, 16},
		{1, BatchMax, SequenceTokensMax, RampTokensMax, 0, 1},
		{1, BatchMax, SequenceTokensMax, RampTokensMax, RampTokensMax/SequenceTokensMax - 1, BatchMax - 1},
		{1, BatchMax, SequenceTokensMax, RampTokensMax, RampTokensMax / SequenceTokensMax, BatchMax},
		{1, 9, SequenceTokensMax, RampTokensMax, record.SequencesMax, 9}, // tokens beyond 64 bits
	} {
		s := redoState(t)
		config := s.Config()
		config.BatchStart, config.BatchEnd, config.SequenceTokens, config.BatchRampTokens = c.start, c.end, c.tokens, c.ramp
		s.putConfig(config)
		s.h().SetDataIndex(c.index)
		if got := s.batchSize(); got != c.want {
			t.Errorf("%+v: batch of %d", c, got)
		}
	}
}
