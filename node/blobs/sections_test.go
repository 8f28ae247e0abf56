package blobs

import (
	"bytes"
	"errors"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// answering returns what peers with blobs answer.
func answering(s *Store) func(r Range) []byte {
	return func(r Range) []byte {
		q := wire.AppendHash(nil, r.Payload)
		q = wire.AppendU32(wire.AppendU32(q, uint32(r.From)), uint32(r.To-r.From))
		in := wire.NewReader(q)
		return s.AnswerRange(&in)
	}
}

// TestRangesOfPayloads gets every range of a payload from its author, and then from one that got it
// there.
func TestRangesOfPayloads(t *testing.T) {
	for _, size := range []int{1, codec.PieceBytes, 5*codec.PieceBytes + 7, (partPieces + 3) * codec.PieceBytes} {
		payload := make([]byte, size)
		for i := range payload {
			payload[i] = byte(i * i >> 3)
		}
		root := codec.PayloadRoot(payload, true)
		author, other := New(), New()
		author.PutPieces(1, payload)
		for from := 0; from < size; from += size/5 + 1 {
			to := min(size, from+size/3+1)
			var got []byte
			received := 0
			for _, r := range Ranges(root, from, to) {
				s, err := ParseSection(answering(author)(r), r, size)
				if err != nil {
					t.Fatalf("%d bytes, pieces %d to %d: %v", size, r.From, r.To, err)
				}
				other.PutSection(1, r, s)
				again, err := ParseSection(answering(other)(r), r, size)
				if err != nil || !bytes.Equal(again.Bytes, s.Bytes) {
					t.Fatalf("%d bytes, pieces %d to %d from another: %v", size, r.From, r.To, err)
				}
				got = append(got, s.Bytes...)
				received += len(answering(author)(r))
			}
			if want := RangeBytes(size, from, to); received != want {
				t.Errorf("bytes %d to %d of %d came with %d, want %d", from, to, size, received, want)
			}
			if skip := from % codec.PieceBytes; !bytes.Equal(got[skip:skip+to-from], payload[from:to]) {
				t.Errorf("bytes %d to %d of %d are others", from, to, size)
			}
		}
		other.Forget(2)
		if n := len(other.sections); n > 0 {
			t.Errorf("%d sections stay", n)
		}
	}
}

func TestRangesThatAreNone(t *testing.T) {
	payload := bytes.Repeat([]byte("payload"), 1000)
	s := New()
	s.PutPieces(1, payload)
	root, n := codec.PayloadRoot(payload, true), pieceCount(len(payload))
	ask := answering(s)
	for _, r := range []Range{{root, 0, 0}, {root, n, n + 1}, {root, 0, n + 1}, {root, 1 << 31, 1<<31 + 1}, {wire.Sum("another"), 0, 1}, {merkle.BlobRoot(payload), 0, 1}} {
		if got := ask(r); got != nil {
			t.Errorf("%d bytes are served for pieces %d to %d of %s", len(got), r.From, r.To, r.Payload)
		}
	}
	r := Range{root, 1, 3}
	good := ask(r)
	flipped := bytes.Clone(good)
	flipped[len(flipped)-1] ^= 1
	if _, err := ParseSection(flipped, r, len(payload)); !errors.Is(err, p2p.ErrLied) {
		t.Errorf("a changed byte: %v", err)
	}
	if _, err := ParseSection(good, Range{root, 2, 4}, len(payload)); !errors.Is(err, p2p.ErrLied) {
		t.Errorf("other pieces: %v", err)
	}
	for i := range good {
		if _, err := ParseSection(good[:i], r, len(payload)); err == nil {
			t.Fatalf("the first %d bytes are taken", i)
		}
	}
	// One asks for more ranges than are kept.
	long := make([]byte, 100*codec.PieceBytes)
	s.PutPieces(2, long)
	root = codec.PayloadRoot(long, true)
	for from := range 100 {
		for to := from + 1; to <= 100; to++ {
			if ask(Range{root, from, to}) == nil {
				t.Fatalf("pieces %d to %d are not served", from, to)
			}
		}
	}
	if len(s.sections) > sectionsOfOwn+1 {
		t.Errorf("%d sections are kept", len(s.sections))
	}
}

func FuzzParseSection(f *testing.F) {
	payload := bytes.Repeat([]byte("payload"), 1000)
	s := New()
	s.PutPieces(1, payload)
	r := Range{codec.PayloadRoot(payload, true), 1, 3}
	f.Add(answering(s)(r))
	f.Fuzz(func(t *testing.T, answer []byte) {
		got, err := ParseSection(answer, r, len(payload))
		if err == nil && !bytes.Equal(got.Bytes, payload[codec.PieceBytes:3*codec.PieceBytes]) {
			t.Error("other bytes are taken")
		}
	})
}

// TestWhatIsShownIsSentOnce: an aggregator that was asked before answers once that has changed.
func TestWhatIsShownIsSentOnce(t *testing.T) {
	s := New()
	ask := func(round coordinator.Round, shown []byte) []byte {
		in := wire.NewReader(AppendHeld(nil, round, shown))
		return s.AnswerHeld(&in)
	}
	first, second := []byte{0, 1, 2}, []byte{3, 1, 2}
	if got := ask(7, nil); got != nil {
		t.Errorf("%v is shown before anything is held", got)
	}
	s.ShowHeld(7, first)
	if got := ask(7, nil); !bytes.Equal(got, first) {
		t.Errorf("%v is shown first", got)
	}
	if got := ask(7, first); got != nil {
		t.Errorf("%v is shown again", got)
	}
	s.ShowHeld(7, second)
	if got := ask(7, first); !bytes.Equal(got, second) {
		t.Errorf("%v is shown after a change", got)
	}
	if got := ask(8, second); got != nil {
		t.Errorf("%v is shown of another round", got)
	}
	for _, q := range [][]byte{{7, 0, 0}, {7, 0, 0, 0, 1}, append(AppendHeld(nil, 7, first), 0)} {
		if in := wire.NewReader(q); s.AnswerHeld(&in) != nil {
			t.Errorf("a question of %d bytes is answered", len(q))
		}
	}
}
