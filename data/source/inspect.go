package source

import (
	"context"
	"fmt"
	"slices"
)

// Info describes a source file.
type Info struct {
	Path       string `json:"file"`
	Format     Format `json:"format"`
	Bytes      uint64 `json:"bytes"`                 // size of the file
	Tokens     uint64 `json:"tokens,omitempty"`      // for a file of tokens
	TokenBytes int    `json:"token_bytes,omitempty"` // for a file of tokens
	// Documents is the number of nonempty documents in rows, the index's count of Megatron, and 1 for
	// text.
	Documents uint64   `json:"documents,omitempty"`
	TextBytes uint64   `json:"text_bytes,omitempty"` // of all documents
	Columns   []string `json:"columns,omitempty"`    // of a table
	Field     string   `json:"field,omitempty"`      // of the rows, with the documents
	Chat      bool     `json:"chat,omitempty"`       // the documents are conversations, in JSON
	Begin     []byte   `json:"-"`                    // up to 200 bytes of the first document
}

// Inspect reads a source file as Prepare would, from front to end.
func Inspect(ctx context.Context, path string, format Format, field string) (Info, error) {
	list, err := Open([]string{path}, format, field, 0)
	if err != nil {
		return Info{}, fmt.Errorf("inspect: %w", err)
	}
	s := &list[0]
	info := Info{Path: s.Path, Format: s.format, Bytes: s.Size}
	if s.format.hasTokens() {
		info.Tokens, info.TokenBytes, info.Documents = s.layout.tokens, s.layout.size, s.layout.documents
		return info, nil
	}
	info.Field, info.Chat = s.content.field, s.content.chat
	if info.Columns, err = s.columns(); err != nil {
		return Info{}, fmt.Errorf("inspect %q: %w", s.Path, err)
	}
	document := func(text []byte) {
		if info.TextBytes == 0 {
			info.Begin = slices.Clone(text[:min(len(text), 200)])
		}
		info.TextBytes += uint64(len(text))
	}
	err = s.Read(ctx, Position{}, func(p *Piece) error {
		if p.text != nil {
			document(p.text)
			info.Documents = 1
			return nil
		}
		return s.eachDocument(p, func(text []byte) { document(text); info.Documents++ })
	})
	if err != nil {
		return Info{}, fmt.Errorf("inspect: %w", err)
	}
	return info, nil
}

// columns returns the names of a table's columns.
func (s *File) columns() ([]string, error) {
	switch s.format {
	case Parquet:
		f, table, err := s.openTable()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return columnNames(table), nil
	case Arrow:
		r, err := s.openArrow(Position{})
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return r.(*arrowReader).names(), nil
	}
	return nil, nil
}
