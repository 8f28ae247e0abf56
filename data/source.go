package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

const (
	// pieceBytes is how much of a source is read and encoded at once. A text is cut into pieces after its line ends, so what a tokenizer
	// joins across line ends may depend on this number: it is part of the format.
	pieceBytes = 1 << 20

	// cutBytes is how far beyond the begin of the held-out share the end of a line is looked for.
	cutBytes = 64 << 10
)

// sourceFile is a file that tokens come from.
type sourceFile struct {
	path    string
	format  Format
	size    uint64
	heldOut uint32 // permille
}

// newSources looks at the files before any work is done on them.
func newSources(paths []string, o PrepareOptions) ([]sourceFile, error) {
	if len(paths) == 0 {
		return nil, errors.New("no source file is named")
	}
	var list []sourceFile
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%q is not a file; name the files in it", path)
		}
		s := sourceFile{path, o.Format, uint64(info.Size()), o.HeldOutPermille}
		if n := o.Format.tokenBytes(); n > 0 && s.size%uint64(n) != 0 {
			return nil, fmt.Errorf("%q has %d bytes, which is no number of tokens of %d bytes", path, s.size, n)
		}
		list = append(list, s)
	}
	return list, nil
}

// write gives the tokens of s to w.
func (s sourceFile) write(ctx context.Context, w *shardWriter) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	cut, err := s.cut(f)
	if err != nil {
		return fmt.Errorf("read %q: %w", s.path, err)
	}
	if err := s.writePart(ctx, f, 0, cut, w, &w.train); err != nil {
		return err
	}
	return s.writePart(ctx, f, cut, s.size, w, &w.heldOut)
}

// cut returns where the held-out part of s begins.
func (s sourceFile) cut(f *os.File) (uint64, error) {
	if n := uint64(s.format.tokenBytes()); n > 0 {
		tokens := s.size / n
		return (tokens - share(tokens, s.heldOut)) * n, nil
	}
	from := s.size - share(s.size, s.heldOut)
	if from == s.size {
		return from, nil
	}
	b := make([]byte, min(cutBytes, s.size-from))
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

// share is permille/1000 of n, rounded down; it does not overflow.
func share(n uint64, permille uint32) uint64 {
	return n/1000*uint64(permille) + n%1000*uint64(permille)/1000
}

// writePart gives the bytes [from, to) of s to a part.
func (s sourceFile) writePart(ctx context.Context, f *os.File, from, to uint64, w *shardWriter, p *partWriter) error {
	if from == to {
		return nil
	}
	r := io.NewSectionReader(f, int64(from), int64(to-from))
	var err error
	if s.format == Text {
		err = s.writeText(ctx, r, w, p)
	} else {
		err = s.writeTokens(ctx, r, w, p)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%q became shorter while it was read", s.path)
	}
	return err
}

// writeText encodes a text piece by piece, and ends it.
func (s sourceFile) writeText(ctx context.Context, r *io.SectionReader, w *shardWriter, p *partWriter) error {
	buf := make([]byte, min(pieceBytes, r.Size()))
	var tokens []uint32
	kept := 0 // bytes at the front of buf that the last piece left
	for left := r.Size(); left > 0 || kept > 0; {
		n := min(int64(len(buf)-kept), left)
		if _, err := io.ReadFull(r, buf[kept:kept+int(n)]); err != nil {
			return short(err)
		}
		left -= n
		piece := buf[:kept+int(n)]
		if left > 0 {
			piece = piece[:pieceEnd(piece)]
		}
		tokens = w.tokenizer.Encode(tokens[:0], piece)
		if err := w.write(ctx, p, tokens); err != nil {
			return fmt.Errorf("%q: %w", s.path, err)
		}
		kept = copy(buf, buf[len(piece):kept+int(n)])
		w.read(uint64(n))
	}
	return w.write(ctx, p, []uint32{w.tokenizer.End()})
}

// pieceEnd returns how much of b to encode when more text follows: as far as the last line end, or else as far as the last whole character.
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

// writeTokens copies tokens piece by piece.
func (s sourceFile) writeTokens(ctx context.Context, r *io.SectionReader, w *shardWriter, p *partWriter) error {
	buf := make([]byte, min(pieceBytes, r.Size()))
	size := s.format.tokenBytes()
	tokens := make([]uint32, len(buf)/size)
	for left := r.Size(); left > 0; {
		n := min(int64(len(buf)), left)
		if _, err := io.ReadFull(r, buf[:n]); err != nil {
			return short(err)
		}
		left -= n
		piece := tokens[:int(n)/size]
		decode(piece, buf, size)
		if err := w.write(ctx, p, piece); err != nil {
			return fmt.Errorf("%q: %w", s.path, err)
		}
		w.read(uint64(n))
	}
	return nil
}

// short makes the two ends that ReadFull knows one.
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
