// Package batch gives each trainer of a round its part of the round's data.
//
// The training data is an endless row of sequences, numbered from 0. The batch of a round is a list
// of spans of it: as a rule one span, the next in the row, with spans before it that an earlier
// round left untrained. Laid end to end the spans are the round's virtual batch [0, total). Split
// cuts the virtual batch into one part a trainer, in the order of their positions in the committee,
// or a Division into parts in proportion to their speeds, and Cut maps a part back to spans of
// sequences:
//
//	spans          {100, 3} {500, 5}                  sequences 100 101 102 500 501 502 503 504
//	virtual batch  0 1 2 3 4 5 6 7
//	Split by 3     0 1 2 | 3 4 5 | 6 7                the first parts are the longer ones
//	Cut            {100, 3} | {500, 3} | {503, 2}
//
// Every sequence is in exactly one part: nothing is dropped when the division leaves a remainder,
// and nothing is given twice.
//
// Spans have one encoding, which commitments hash: U32 number of spans, then for each U64 Start and
// U32 Count. The spans of position 0 above are
//
//	01 00 00 00   64 00 00 00 00 00 00 00   03 00 00 00
//
// The package is replicated (see package wire).
package batch

// Span is a run of sequences, [Start, Start+Count), in the row of the training data.
type Span struct {
	Start uint64 // number of the first sequence
	Count uint32 // number of sequences; spans in a list have at least one
}

// End returns the number after the last sequence.
func (s Span) End() uint64 { return s.Start + uint64(s.Count) }

// Split returns the part [from, from+count) of the virtual batch [0, total) for the trainer at a
// position among n. Parts follow each other in the order of positions and differ in length by at
// most one, the longer first. It panics when there is no such position.
func Split(total, n, position uint32) (from, count uint32) {
	if position >= n {
		panic("batch: position beyond the trainers")
	}
	base, longer := total/n, total%n
	from = position*base + min(position, longer)
	if position < longer {
		base++
	}
	return from, base
}
