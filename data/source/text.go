package source

import (
	"bytes"
	"io"
	"os"
	"unicode/utf8"
)

// cutBytes bounds the search for a line end after the start of the held-out share of a text.
const cutBytes = 64 << 10

// textReader reads a text source.
type textReader struct {
	*os.File
	source *File
	cut    uint64 // where the held-out part begins
	at     uint64
}

func (s *File) openText(at Position) (reader, error) {
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, err
	}
	cut, err := s.textCut(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &textReader{f, s, cut, at.Offset}, nil
}

// textCut returns where the held-out part of a text begins.
func (s *File) textCut(f *os.File) (uint64, error) {
	from := s.Size - share(s.Size, s.heldOut)
	if from == s.Size {
		return from, nil
	}
	b := make([]byte, min(cutBytes, s.Size-from))
	if _, err := f.ReadAt(b, int64(from)); err != nil {
		return 0, err
	}
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return from + uint64(i) + 1, nil
	}
	for i := range min(utf8.UTFMax, len(b)) {
		if utf8.RuneStart(b[i]) {
			return from + uint64(i), nil
		}
	}
	return from, nil
}

func (r *textReader) next() (*Piece, error) {
	to := r.cut // of the part
	if r.at >= r.cut {
		to = r.source.Size
	}
	if r.at == to {
		return nil, io.EOF
	}
	b := make([]byte, min(pieceBytes, to-r.at))
	if _, err := r.ReadAt(b, int64(r.at)); err != nil {
		return nil, r.source.short(err)
	}
	p := &Piece{heldOut: r.at >= r.cut, last: r.at+uint64(len(b)) == to}
	if !p.last {
		b = b[:pieceEnd(b)]
	}
	p.text = b
	r.at += uint64(len(b))
	p.End = Position{Offset: r.at, Read: r.at}
	return p, nil
}

// pieceEnd returns how much of b to encode when more text follows: up to the last line end, or else
// up to the last complete character.
func pieceEnd(b []byte) int {
	if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
		return i + 1
	}
	for i := len(b) - 1; i > 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if utf8.FullRune(b[i:]) {
				break
			}
			return i
		}
	}
	return len(b)
}
