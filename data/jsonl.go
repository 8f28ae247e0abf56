package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
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
	source *sourceFile
	file   *os.File
	zstd   *zstd.Decoder // or nil
	read   atomic.Uint64 // bytes of the file
	lines  *bufio.Reader
	at     position
}

func (s *sourceFile) openJSONL(at position) (reader, error) {
	f, err := os.Open(s.path)
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
	switch name := strings.ToLower(r.source.path); {
	case strings.HasSuffix(name, ".gz"):
		in, err = gzip.NewReader(bufio.NewReaderSize(in, 256<<10))
	case strings.HasSuffix(name, ".zst"):
		r.zstd, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(ZstdWindowMax))
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

func (r *lineReader) next() (*piece, error) {
	p := &piece{line: r.at.Line + 1}
	for size := 0; size < pieceBytes && len(p.lines) < pieceDocuments; {
		line, err := r.line()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%q line %d: %w", r.source.path, r.at.Line+1, err)
		}
		size += len(line)
		r.at.Line++
		r.at.Offset += uint64(len(line))
		p.lines = append(p.lines, line)
	}
	if len(p.lines) == 0 {
		return nil, io.EOF
	}
	r.at.Read = min(r.read.Load(), r.source.size)
	p.end = r.at
	return p, nil
}

// line reads a line with its terminator, which the last line may lack.
func (r *lineReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		if len(line)+len(part) > LineBytesMax {
			return nil, fmt.Errorf("it is longer than %d bytes", LineBytesMax)
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
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	value, ok := object[field]
	if !ok {
		return nil, fmt.Errorf("it has no field %q: name the field of the text with --field; its fields are %s", field, fieldNames(object))
	}
	var text *string
	if err := json.Unmarshal(value, &text); err != nil {
		return nil, fmt.Errorf("field %q is %.20s..., not a string", field, value)
	}
	if text == nil {
		return nil, nil
	}
	return []byte(*text), nil
}
