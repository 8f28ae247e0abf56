// Package source reads the files that a data set is prepared from: text, files of tokens, and
// tables of documents or conversations.
//
// Open checks the files, and finds out what is in them. Read returns a file piece by piece, from
// any position at which a piece ends, and Encode makes tokens of a piece. What they give depends on
// the files' contents, the tokenizer and the share that is held out, not on the machine.
package source

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

// A reader returns a source piece by piece. Its pieces depend on the file and on the start
// position, which is always the end of a piece.
type reader interface {
	// next returns the next piece, or io.EOF.
	next() (*Piece, error)

	// Close closes the file.
	Close() error
}

// Position is a place in a source: the amounts that precede it.
type Position struct {
	Offset uint64 `json:"offset"` // bytes, after decompression
	Line   uint64 `json:"line"`   // for JSONL
	Row    uint64 `json:"row"`    // for Parquet
	Read   uint64 `json:"read"`   // bytes of the file, for progress
}

// Piece is a unit of encoding, in one of three kinds.
type Piece struct {
	End Position // where the next piece begins

	text []byte // a stretch of a text
	last bool   // the last stretch

	tokens []uint32 // tokens as they are

	documents [][]byte // documents, whole
	lines     [][]byte // or rows that have them, as JSON objects
	line      uint64   // number of the first, from 1

	heldOut bool // for text and tokens; documents are held out one by one
}

// Encoded is a piece as tokens, to train on and held out.
type Encoded struct {
	Train, HeldOut []uint32
	Err            error
}

// Encode tokenizes a piece. Only conversations need f, which renders them.
func (s *File) Encode(p *Piece, t tokenizer.Tokenizer, f *chat.Format) (e Encoded) {
	if p.text != nil || p.tokens != nil {
		tokens := p.tokens
		if p.text != nil {
			tokens = t.Encode(make([]uint32, 0, len(p.text)/3), p.text)
		}
		if p.last {
			tokens = append(tokens, t.End())
		}
		if p.heldOut {
			e.HeldOut = tokens
		} else {
			e.Train = tokens
		}
		return e
	}
	to := func(document []byte) *[]uint32 {
		if HeldOut(document, s.heldOut) {
			return &e.HeldOut
		}
		return &e.Train
	}
	if !s.content.chat {
		e.Err = s.eachDocument(p, func(document []byte) {
			part := to(document)
			*part = append(t.Encode(*part, document), t.End())
		})
		return e
	}
	e.Err = s.eachConversation(p, func(c chat.Conversation) error {
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
				ids[i] |= llama.Masked
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
func (s *File) eachDocument(p *Piece, do func([]byte)) error {
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
func (s *File) eachConversation(p *Piece, do func(chat.Conversation) error) error {
	return s.eachRow(p, func(line []byte) error {
		c, ok, err := s.content.conversation(line)
		if err == nil && ok {
			err = do(c)
		}
		return err
	})
}

// eachRow calls do with every row of a piece.
func (s *File) eachRow(p *Piece, do func([]byte) error) error {
	for i, line := range p.lines {
		if err := do(line); err != nil {
			return fmt.Errorf("%q %s %d: %w", s.Path, s.row(), p.line+uint64(i), err)
		}
	}
	return nil
}

// HeldOut decides about a document by its contents alone, so that copies of a text are never in
// both parts.
func HeldOut(document []byte, permille uint32) bool {
	if permille == 0 {
		return false
	}
	h := wire.Sum("entrain/held-out", document)
	return binary.BigEndian.Uint64(h[:])%1000 < uint64(permille)
}

// File is a file that tokens come from.
type File struct {
	Path    string // for Megatron, of the .bin
	format  Format
	Size    uint64 // in bytes
	modTime int64
	heldOut uint32      // permille
	content content     // of rows
	array   bool        // JSON in one list, not in lines
	layout  tokenLayout // of files of tokens
}

// Open checks files before any work is done on them. field is the one of a row that holds the text
// or the conversation, "" for the one that Open finds. The share heldOut of them is held out, in
// permille.
func Open(paths []string, format Format, field string, heldOut uint32) ([]File, error) {
	if len(paths) == 0 {
		return nil, errors.New("name a source file")
	}
	var list []File
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

// Limits of a source, each of what is in memory at a time.
const (
	// a line of JSONL or text in a table, copied several times; the longest books have 20 MB
	lineBytesMax  = 64 << 20
	zstdWindowMax = 256 << 20 // memory for a .zst file: zstd --long=27 needs half of it
)

// DefaultField is the field of rows that holds the text, unless another is named.
const DefaultField = "text"

// look finds out what is in the rows of a source, before any work is done on it: in the first that
// has something in the field.
func (s *File) look(field string) (err error) {
	if s.format == JSONL {
		if err := s.lookForArray(); err != nil {
			return err
		}
	}
	s.content = content{chat: true} // all fields
	r, err := s.open(Position{})
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
			return fmt.Errorf("%q %s %d: %w", s.Path, s.row(), i+1, err)
		case string(row[s.content.field]) != "null":
			return nil
		}
	}
	return nil
}

// row is what errors call a row.
func (s *File) row() string {
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

func newSource(path string, format Format) (s File, err error) {
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
	s = File{Path: path, format: format, Size: uint64(info.Size()), modTime: info.ModTime().UnixNano()}
	if format.hasTokens() {
		s.layout, err = readTokenLayout(path, format, s.Size)
	}
	return s, err
}

// open opens a source at a position.
func (s *File) open(at Position) (r reader, err error) {
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
		return nil, fmt.Errorf("read %q: %w", s.Path, err)
	}
	return r, nil
}

// ReadAll calls do for each piece of the sources, from a position in source number i, until do or a
// source fails or ctx ends.
func ReadAll(ctx context.Context, sources []File, i int, at Position, do func(i int, p *Piece) error) error {
	for ; i < len(sources); i, at = i+1, (Position{}) {
		if err := sources[i].Read(ctx, at, func(p *Piece) error { return do(i, p) }); err != nil {
			return err
		}
	}
	return nil
}

// Read calls do for each piece of a file, from a position, until do or the file fails or ctx ends.
func (s *File) Read(ctx context.Context, at Position, do func(*Piece) error) error {
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
func (s *File) short(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%q was truncated while it was read", s.Path)
	}
	return fmt.Errorf("read %q: %w", s.Path, err)
}

// HasTokens reports whether the file holds tokens, not text.
func (s *File) HasTokens() bool { return s.format.hasTokens() }

// IsChat reports whether the file holds conversations.
func (s *File) IsChat() bool { return s.content.chat }

// AppendIdentity appends to b what distinguishes the file and how it is read: its name, its size
// and its modification time, not its contents.
func (s *File) AppendIdentity(b []byte) []byte {
	return fmt.Appendf(b, "%q %d %d %d %d %+v\n", s.Path, s.format, s.Size, s.modTime, s.heldOut, s.content)
}

// CheckUnchanged returns an error if the file's size or modification time is not what it was when
// the file was opened: data written while it was read may or may not be in the pieces.
func (s *File) CheckUnchanged() error {
	info, err := os.Stat(s.Path)
	if err != nil {
		return err
	}
	if uint64(info.Size()) != s.Size || info.ModTime().UnixNano() != s.modTime {
		return fmt.Errorf("%q changed while it was read", s.Path)
	}
	return nil
}

// Sample sends the training text in the first limit bytes of a file.
func (s *File) Sample(ctx context.Context, limit uint64, texts chan<- []byte) error {
	errEnough := errors.New("enough")
	send := func(text []byte) error {
		select {
		case texts <- text:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := s.Read(ctx, Position{}, func(p *Piece) error {
		if p.text != nil && !p.heldOut {
			if err := send(p.text); err != nil {
				return err
			}
		}
		var sent error
		err := s.eachDocument(p, func(document []byte) {
			if sent == nil && !HeldOut(document, s.heldOut) {
				sent = send(document)
			}
		})
		if err = errors.Join(err, sent); err != nil {
			return err
		}
		if p.End.Read >= limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
