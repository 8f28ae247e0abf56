package data

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// parquetReader reads one column of a table. It reads only the pages of the column, one at a time.
type parquetReader struct {
	source *sourceFile
	file   *os.File
	groups []parquet.RowGroup
	column int
	rows   uint64 // of all groups

	group  int // the open one
	pages  parquet.Pages
	values parquet.ValueReader // of the open page
	row    uint64              // the next
}

// openTable opens a parquet file. It recovers from panics of the library, which damaged files can
// cause.
func (s *sourceFile) openTable() (f *os.File, table *parquet.File, err error) {
	if f, err = os.Open(s.path); err != nil {
		return nil, nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the file is damaged: %v", r)
		}
		if err != nil {
			f.Close()
		}
	}()
	table, err = parquet.OpenFile(f, int64(s.size), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err == nil && !slices.Contains(columnNames(table), s.field) {
		err = fmt.Errorf("the table has no column %q: name the column of the text with --field; its columns are %s", s.field, strings.Join(columnNames(table), ", "))
	}
	if err == nil {
		err = s.checkColumn(table)
	}
	return f, table, err
}

func columnNames(table *parquet.File) []string {
	var names []string
	for _, field := range table.Schema().Fields() {
		names = append(names, field.Name())
	}
	return names
}

// checkColumn checks that the column has one text per row.
func (s *sourceFile) checkColumn(table *parquet.File) error {
	leaf, ok := table.Schema().Lookup(s.field)
	if !ok || leaf.MaxRepetitionLevel > 0 || leaf.Node.Type().Kind() != parquet.ByteArray {
		return fmt.Errorf("column %q does not hold text", s.field)
	}
	return nil
}

// checkParquet checks the table before any work is done.
func (s *sourceFile) checkParquet() error {
	f, _, err := s.openTable()
	if err != nil {
		return fmt.Errorf("%q: %w", s.path, err)
	}
	return f.Close()
}

func (s *sourceFile) openParquet(at position) (reader, error) {
	f, table, err := s.openTable()
	if err != nil {
		return nil, err
	}
	leaf, _ := table.Schema().Lookup(s.field)
	r := &parquetReader{source: s, file: f, groups: table.RowGroups(), column: leaf.ColumnIndex, rows: uint64(table.NumRows())}
	if err := r.seek(at.Row); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close closes the file.
func (r *parquetReader) Close() error {
	if r.pages != nil {
		r.pages.Close()
	}
	return r.file.Close()
}

// seek moves to a row.
func (r *parquetReader) seek(row uint64) error {
	r.row = row
	for r.group < len(r.groups) && row >= uint64(r.groups[r.group].NumRows()) {
		row -= uint64(r.groups[r.group].NumRows())
		r.group++
	}
	if r.group == len(r.groups) {
		return nil
	}
	r.pages = r.groups[r.group].ColumnChunks()[r.column].Pages()
	if row == 0 {
		return nil
	}
	return r.pages.SeekToRow(int64(row))
}

func (r *parquetReader) next() (p *piece, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the file is damaged: %v", v)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			err = fmt.Errorf("%q row %d: %w", r.source.path, r.row+1, err)
		}
	}()
	p = &piece{}
	var buf [256]parquet.Value
	for size := 0; size < pieceBytes && len(p.documents) < pieceDocuments; {
		n, err := r.read(buf[:])
		if err != nil {
			if errors.Is(err, io.EOF) && len(p.documents) > 0 {
				break
			}
			return nil, err
		}
		for _, v := range buf[:n] {
			var document []byte
			if !v.IsNull() {
				document = slices.Clone(v.ByteArray())
			}
			size += len(document)
			if len(document) > LineBytesMax {
				return nil, fmt.Errorf("the text has %d bytes, more than %d", len(document), LineBytesMax)
			}
			p.documents = append(p.documents, document)
		}
		r.row += uint64(n)
	}
	p.end = position{Row: r.row}
	if r.rows > 0 {
		p.end.Read = uint64(float64(r.source.size) * min(1, float64(r.row)/float64(r.rows)))
	}
	return p, nil
}

// read reads at least one value unless the table has ended.
func (r *parquetReader) read(buf []parquet.Value) (int, error) {
	for {
		if r.values != nil {
			n, err := r.values.ReadValues(buf)
			if n > 0 {
				return n, nil
			}
			if err == nil || !errors.Is(err, io.EOF) {
				return 0, errors.Join(err, errors.New("a page gave no values"))
			}
			r.values = nil
		}
		if r.group == len(r.groups) {
			return 0, io.EOF
		}
		if r.pages == nil {
			r.pages = r.groups[r.group].ColumnChunks()[r.column].Pages()
		}
		page, err := r.pages.ReadPage()
		if errors.Is(err, io.EOF) {
			err = r.pages.Close()
			r.pages = nil
			r.group++
		} else if err == nil {
			r.values = page.Values()
		}
		if err != nil {
			return 0, err
		}
	}
}

// fieldNames lists the fields of an object, for messages.
func fieldNames[V any](object map[string]V) string {
	names := slices.Sorted(maps.Keys(object))
	if len(names) > 12 {
		names = append(names[:12], "...")
	}
	return strings.Join(names, ", ")
}
