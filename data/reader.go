package data

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/tokenizer/chat"
	"github.com/entrain-network/entrain/wire"
)

const (
	// pieceBytes is how much of a source is read and encoded at once. A text is cut into pieces
	// after line ends. A tokenizer may join text across line ends, so the tokens can depend on this
	// number: it is part of the format.
	pieceBytes = 1 << 20

	// pieceDocuments is the most documents encoded at once, however short they are.
	pieceDocuments = 4096
)

// Masked is the bit of a token that is read and not learnt.
const Masked = llama.Masked

// A reader returns a source piece by piece. Its pieces depend on the file and on the start
// position, which is always the end of a piece.
type reader interface {
	// next returns the next piece, or io.EOF.
	next() (*piece, error)

	// Close closes the file.
	Close() error
}

// position is a place in a source: the amounts that precede it.
type position struct {
	Offset uint64 `json:"offset"` // bytes, after decompression
	Line   uint64 `json:"line"`   // for JSONL
	Row    uint64 `json:"row"`    // for Parquet
	Read   uint64 `json:"read"`   // bytes of the file, for progress
}

// piece is a unit of encoding, in one of three kinds.
type piece struct {
	end position // where the next piece begins

	text []byte // a stretch of a text
	last bool   // the last stretch

	tokens []uint32 // tokens as they are

	documents [][]byte // documents, whole
	lines     [][]byte // or rows that have them, as JSON objects
	line      uint64   // number of the first, from 1

	heldOut bool // for text and tokens; documents are held out one by one
}

// encoded is a piece as tokens.
type encoded struct {
	train, heldOut []uint32
	err            error
}

// encode tokenizes a piece; f is for conversations.
func (s *sourceFile) encode(p *piece, t tokenizer.Tokenizer, f *chat.Format) (e encoded) {
	if p.text != nil || p.tokens != nil {
		tokens := p.tokens
		if p.text != nil {
			tokens = t.Encode(make([]uint32, 0, len(p.text)/3), p.text)
		}
		if p.last {
			tokens = append(tokens, t.End())
		}
		if p.heldOut {
			e.heldOut = tokens
		} else {
			e.train = tokens
		}
		return e
	}
	to := func(document []byte) *[]uint32 {
		if s.isHeldOut(document) {
			return &e.heldOut
		}
		return &e.train
	}
	if !s.content.chat {
		e.err = s.eachDocument(p, func(document []byte) {
			part := to(document)
			*part = append(t.Encode(*part, document), t.End())
		})
		return e
	}
	e.err = s.eachConversation(p, func(c chat.Conversation) error {
		ids, said, err := f.Lesson(c)
		if err != nil || !slices.Contains(said, true) {
			return err
		}
		text, err := t.Decode(nil, ids)
		if err != nil {
			return err
		}
		for i := range ids {
			if !said[i] {
				ids[i] |= Masked
			}
		}
		part := to(text)
		*part = append(*part, ids...)
		return nil
	})
	return e
}

// eachDocument calls do with every nonempty document of a piece. A conversation is its messages as
// JSON.
func (s *sourceFile) eachDocument(p *piece, do func([]byte)) error {
	if s.content.chat {
		return s.eachConversation(p, func(c chat.Conversation) error { do(c.Messages); return nil })
	}
	for _, d := range p.documents {
		if len(d) > 0 {
			do(d)
		}
	}
	return s.eachRow(p, func(line []byte) error {
		d, err := documentOf(line, s.content.field)
		if err == nil && len(d) > 0 {
			do(d)
		}
		return err
	})
}

// eachConversation calls do with every conversation of a piece that is not empty.
func (s *sourceFile) eachConversation(p *piece, do func(chat.Conversation) error) error {
	return s.eachRow(p, func(line []byte) error {
		c, ok, err := s.content.conversation(line)
		if err == nil && ok {
			err = do(c)
		}
		return err
	})
}

// eachRow calls do with every row of a piece.
func (s *sourceFile) eachRow(p *piece, do func([]byte) error) error {
	for i, line := range p.lines {
		if err := do(line); err != nil {
			return fmt.Errorf("%q %s %d: %w", s.path, s.row(), p.line+uint64(i), err)
		}
	}
	return nil
}

// isHeldOut decides about a document by its contents alone, so that copies of a text are never in
// both parts.
func (s *sourceFile) isHeldOut(document []byte) bool {
	if s.heldOut == 0 {
		return false
	}
	h := wire.Sum("entrain/held-out", document)
	return binary.BigEndian.Uint64(h[:])%1000 < uint64(s.heldOut)
}

// sourceFile is a file that tokens come from.
type sourceFile struct {
	path    string // for Megatron, of the .bin
	format  Format
	size    uint64
	modTime int64
	heldOut uint32      // permille
	content content     // of rows
	array   bool        // JSON in one list, not in lines
	layout  tokenLayout // of files of tokens
}

// newSources checks the files before any work is done on them.
func newSources(paths []string, format Format, field string, heldOut uint32) ([]sourceFile, error) {
	if len(paths) == 0 {
		return nil, errors.New("name a source file")
	}
	var list []sourceFile
	for _, path := range paths {
		s, err := newSource(path, format)
		if err != nil {
			return nil, err
		}
		s.heldOut = heldOut
		if s.format.hasRows() {
			if err := s.look(field); err != nil {
				return nil, err
			}
		}
		list = append(list, s)
	}
	return list, nil
}

// DefaultField is the field of rows that holds the text, unless another is named.
const DefaultField = "text"

// look finds out what is in the rows of a source, before any work is done on it: in the first that
// has something in the field.
func (s *sourceFile) look(field string) (err error) {
	if s.format == JSONL {
		if err := s.lookForArray(); err != nil {
			return err
		}
	}
	s.content = content{chat: true} // all fields
	r, err := s.open(position{})
	if err != nil {
		return err
	}
	defer r.Close()
	// The reader has what it needs of this.
	s.content, err = content{field: cmp.Or(field, DefaultField)}, nil
	for i := 0; i < pieceDocuments && err == nil; i++ {
		var line []byte
		line, err = r.(rowReader).nextRow()
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var row map[string]json.RawMessage
		if err == nil {
			row, err = objectOf(line)
		}
		if err == nil {
			s.content, err = contentOf(row, field)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%q %s %d: %w", s.path, s.row(), i+1, err)
		case string(row[s.content.field]) != "null":
			return nil
		}
	}
	return nil
}

// row is what errors call a row.
func (s *sourceFile) row() string {
	if s.format == JSONL && !s.array {
		return "line"
	}
	return "row"
}

// A rowReader returns a source of rows row by row, as JSON objects, or io.EOF.
type rowReader interface {
	reader
	nextRow() ([]byte, error)
}

func newSource(path string, format Format) (s sourceFile, err error) {
	if format == Auto {
		if format, err = DetectFormat(path); err != nil {
			return s, err
		}
	}
	if format == Megatron {
		path = megatronName(path, ".bin")
	}
	info, err := os.Stat(path)
	if err != nil {
		return s, err
	}
	if !info.Mode().IsRegular() {
		return s, fmt.Errorf("%q is not a file; name the files in it", path)
	}
	s = sourceFile{path: path, format: format, size: uint64(info.Size()), modTime: info.ModTime().UnixNano()}
	if format.hasTokens() {
		s.layout, err = readTokenLayout(path, format, s.size)
	}
	return s, err
}

// open opens a source at a position.
func (s *sourceFile) open(at position) (r reader, err error) {
	switch s.format {
	case Text:
		r, err = s.openText(at)
	case JSONL:
		r, err = s.openJSONL(at)
	case Parquet:
		r, err = s.openParquet(at)
	case Arrow:
		r, err = s.openArrow(at)
	default:
		r, err = s.openTokens(at)
	}
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return nil, err // already names the file
		}
		return nil, fmt.Errorf("read %q: %w", s.path, err)
	}
	return r, nil
}

// readAll calls do for each piece of the sources, from a position in source number i, until do or a
// source fails or ctx ends.
func readAll(ctx context.Context, sources []sourceFile, i int, at position, do func(i int, p *piece) error) error {
	for ; i < len(sources); i, at = i+1, (position{}) {
		if err := sources[i].readFrom(ctx, at, func(p *piece) error { return do(i, p) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *sourceFile) readFrom(ctx context.Context, at position, do func(*piece) error) error {
	r, err := s.open(at)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(p); err != nil {
			return err
		}
	}
}

// share returns permille/1000 of n, rounded down, without overflow.
func share(n uint64, permille uint32) uint64 {
	return n/1000*uint64(permille) + n%1000*uint64(permille)/1000
}

// short converts the two end-of-file errors of ReadFull to an error about the file.
func (s *sourceFile) short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%q was truncated while it was read", s.path)
	}
	return fmt.Errorf("read %q: %w", s.path, err)
}
