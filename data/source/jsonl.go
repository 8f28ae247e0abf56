package source

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// lineReader reads the lines of a file, which may be compressed.
type lineReader struct {
	source *File
	file   *os.File
	zstd   *zstd.Decoder // or nil
	read   atomic.Uint64 // bytes of the file
	lines  *bufio.Reader
	at     Position
}

func (s *File) openJSONL(at Position) (reader, error) {
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, err
	}
	r := &lineReader{source: s, file: f, at: at}
	if err := r.begin(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// begin inserts the decompressor before the file and seeks to the position.
func (r *lineReader) begin() error {
	var in io.Reader = counted{r.file, &r.read}
	var err error
	switch name := strings.ToLower(r.source.Path); {
	case strings.HasSuffix(name, ".gz"):
		in, err = gzip.NewReader(bufio.NewReaderSize(in, 256<<10))
	case strings.HasSuffix(name, ".zst"):
		r.zstd, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(zstdWindowMax))
		in = r.zstd
	default:
		r.read.Store(r.at.Offset)
		_, err = r.file.Seek(int64(r.at.Offset), io.SeekStart)
		r.lines = bufio.NewReaderSize(in, 256<<10)
		return err
	}
	if errors.Is(err, io.EOF) {
		// an empty file is not valid compressed data, but is still a file of no lines
		in, err = bytes.NewReader(nil), nil
	}
	if err != nil {
		return err
	}
	r.lines = bufio.NewReaderSize(in, 256<<10)
	if n, err := io.CopyN(io.Discard, r.lines, int64(r.at.Offset)); err != nil {
		return fmt.Errorf("after %d bytes: %w", n, err)
	}
	return nil
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	n *atomic.Uint64
}

// Read reads and counts.
func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(uint64(n))
	return n, err
}

// Close closes the file.
func (r *lineReader) Close() error {
	if r.zstd != nil {
		r.zstd.Close()
	}
	return r.file.Close()
}

func (r *lineReader) next() (*Piece, error) {
	p := &Piece{line: r.at.Line + 1}
	for size := 0; size < pieceBytes && len(p.lines) < pieceDocuments; {
		line, err := r.nextRow()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%q %s %d: %w", r.source.Path, r.source.row(), r.at.Line+1, err)
		}
		size += len(line)
		p.lines = append(p.lines, line)
	}
	if len(p.lines) == 0 {
		return nil, io.EOF
	}
	r.at.Read = min(r.read.Load(), r.source.Size)
	p.End = r.at
	return p, nil
}

// nextRow reads a line, or an element of the list that the file is.
func (r *lineReader) nextRow() (row []byte, err error) {
	n := 0
	if r.source.array {
		row, n, err = r.element()
	} else {
		row, err = r.line()
		n = len(row)
	}
	if err == nil {
		r.at.Line++
		r.at.Offset += uint64(n)
	}
	return row, err
}

// line reads a line with its terminator, which the last line may lack.
func (r *lineReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		if len(line)+len(part) > lineBytesMax {
			return nil, fmt.Errorf("it is longer than %d bytes", lineBytesMax)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return nil, err
		}
	}
}

// documentOf returns the text in a field of a line's object, or empty text for null and for an
// empty line.
func documentOf(line []byte, field string) ([]byte, error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil, nil
	}
	object, err := objectOf(line)
	if err != nil {
		return nil, err
	}
	if _, ok := object[field]; !ok {
		return nil, fmt.Errorf("it has no field %q: name the field of the text with --field; its fields are %s", field, fieldNames(object))
	}
	text, err := textOf(object, field)
	return []byte(text), err
}

// lookForArray finds out whether the source is one list of JSON.
func (s *File) lookForArray() error {
	r, err := s.open(Position{})
	if err != nil {
		return err
	}
	defer r.Close()
	for n := 0; n < lineBytesMax; n++ {
		c, err := r.(*lineReader).lines.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%q %s 1: %w", s.Path, s.row(), err)
		}
		if !isSpace(c) {
			s.array = c == '['
			return nil
		}
	}
	return nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// element reads an element of a list of JSON, with what is in front of it.
func (r *lineReader) element() (element []byte, read int, err error) {
	depth, quoted, escaped := 0, false, false
	for ; read <= lineBytesMax; read++ {
		c, err := r.lines.ReadByte()
		if errors.Is(err, io.EOF) {
			err = errors.New("the list has no end")
		}
		if err != nil {
			return nil, read, err
		}
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case len(element) == 0 && (isSpace(c) || c == ',' || c == '[' && r.at.Line == 0):
			continue
		case c == ']' && depth == 0:
			return nil, read, errors.Join(io.EOF, r.lines.UnreadByte()) // to end again
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if element = append(element, c); depth == 0 && !quoted {
			if c == '}' || c == ']' || c == '"' {
				return element, read + 1, nil
			}
			return nil, read, fmt.Errorf("an element begins with %q, want an object", c)
		}
	}
	return nil, read, fmt.Errorf("it is longer than %d bytes", lineBytesMax)
}
