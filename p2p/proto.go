package p2p

import (
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/wire"
)

// A Query is a blob request as it travels. See the package comment for its bytes.
type Query struct {
	Run  wire.Hash
	Ref  Ref
	From uint32
	// Count is the number of chunks requested, or 0 for the leaf list or its part that begins at
	// From.
	Count uint32
}

// QueryBytes is the length of a Query.
const QueryBytes = 32 + 32 + 8 + 4 + 4

// Query is the request as it travels, within a run.
func (r Request) Query(run wire.Hash) Query {
	return Query{Run: run, Ref: r.Ref, From: r.From, Count: r.Count}
}

// Append appends the query to dst.
func (q Query) Append(dst []byte) []byte {
	dst = append(dst, q.Run[:]...)
	dst = append(dst, q.Ref.Root[:]...)
	dst = wire.AppendU64(dst, q.Ref.Size)
	dst = wire.AppendU32(dst, q.From)
	return wire.AppendU32(dst, q.Count)
}

// ParseQuery is the inverse of Append. It refuses blobs, chunks and counts beyond
// the limits.
func ParseQuery(b []byte) (Query, error) {
	r := wire.NewReader(b)
	q := Query{Run: r.Hash()}
	q.Ref = Ref{Root: r.Hash(), Size: r.U64()}
	q.From, q.Count = r.U32(), r.U32()
	if err := r.Done(); err != wire.OK {
		return Query{}, fmt.Errorf("blob request: %w", err)
	}
	if q.Ref.Size > MaxBlob {
		return Query{}, fmt.Errorf("blob request: size %d: %w", q.Ref.Size, ErrTooLarge)
	}
	_, part := q.Ref.parts()
	switch {
	case q.Count == 0 && (q.From%part != 0 || q.From >= q.Ref.Chunks()):
		return Query{}, fmt.Errorf("blob request: leaves from %d of %d: %w", q.From, q.Ref.Chunks(), wire.ErrOutOfRange)
	case q.Count > MaxCount, uint64(q.From)+uint64(q.Count) > uint64(q.Ref.Chunks()):
		return Query{}, fmt.Errorf("blob request: %d chunks from %d of %d: %w", q.Count, q.From, q.Ref.Chunks(), wire.ErrOutOfRange)
	}
	return q, nil
}

// A Status begins an answer.
type Status uint8

// The statuses, as they travel.
const (
	StatusOK Status = iota
	StatusMissing
	StatusBusy
	StatusRefused
	StatusOtherRun
)

// Err is the status as who asked sees it, nil for StatusOK. A status that does not
// exist is ErrMalformed.
func (s Status) Err() error {
	switch s {
	case StatusOK:
		return nil
	case StatusMissing:
		return ErrMissing
	case StatusBusy:
		return ErrBusy
	case StatusRefused:
		return ErrRefused
	case StatusOtherRun:
		return ErrOtherRun
	}
	return ErrMalformed
}

// AnswerHeadBytes is the length of an answer's status and length.
const AnswerHeadBytes = 1 + 4

// AppendAnswerHead appends the beginning of an answer: the status and, if it is
// StatusOK, the length of what follows.
func AppendAnswerHead(dst []byte, s Status, length int) []byte {
	dst = append(dst, byte(s))
	if s == StatusOK {
		dst = wire.AppendU32(dst, uint32(length))
	}
	return dst
}

// ParseLeaves reads a leaf list, or a part of one and its proof: 1 to MaxChunks hashes.
func ParseLeaves(b []byte) ([]wire.Hash, error) {
	if len(b) == 0 || len(b)%32 != 0 || len(b) > 32*MaxChunks {
		return nil, fmt.Errorf("leaf list of %d bytes: %w", len(b), ErrMalformed)
	}
	leaves := make([]wire.Hash, len(b)/32)
	for i := range leaves {
		leaves[i] = wire.Hash(b[32*i:])
	}
	return leaves, nil
}

// errServed ends Serve early without a failure.
var errServed = errors.New("served")

// Serve answers a query of the given run from what a source holds, by calls of
// send, which must not keep data. It returns send's first error.
func Serve(src *Underway, run wire.Hash, q Query, send func(s Status, data []byte) error) error {
	err := serve(src, run, q, send)
	if err == errServed {
		return nil
	}
	return err
}

func serve(src *Underway, run wire.Hash, q Query, send func(s Status, data []byte) error) error {
	finish := func(s Status) error {
		if err := send(s, nil); err != nil {
			return err
		}
		return errServed
	}
	if q.Run != run {
		return finish(StatusOtherRun)
	}
	leaves, ok := src.Leaves(q.Ref.Root)
	if !ok || uint64(len(leaves)) != uint64(q.Ref.Chunks()) {
		return finish(StatusMissing)
	}
	if q.Count == 0 {
		return send(StatusOK, src.list(q, leaves))
	}
	for i := q.From; i < q.From+q.Count; i++ {
		b, ok := src.Chunk(q.Ref.Root, i)
		if !ok || len(b) != q.Ref.chunkLen(i) {
			return finish(StatusMissing)
		}
		if err := send(StatusOK, b); err != nil {
			return err
		}
	}
	return nil
}
