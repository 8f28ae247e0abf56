package source

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

// parquetReader reads a column with texts, or what conversations are made of. It reads only the
// pages of these columns, one at a time.
type parquetReader struct {
	source  *File
	file    *os.File
	rows    uint64         // of all groups
	at      uint64         // the next row
	text    *parquetColumn // or nil
	columns []parquetField // of a row, if there is no text
}

// openTable opens a parquet file. It recovers from panics of the library, which damaged files can
// cause.
func (s *File) openTable() (f *os.File, table *parquet.File, err error) {
	if f, err = os.Open(s.Path); err != nil {
		return nil, nil, err
	}
	defer recoverTable(&err)
	if err = checkFooter(f, int64(s.Size)); err == nil {
		table, err = parquet.OpenFile(f, int64(s.Size), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	}
	if err != nil {
		f.Close()
		err = fmt.Errorf("it is not a parquet file, or not a complete one: %w", err)
	}
	return f, table, err
}

// recoverTable turns a panic of the library into an error.
func recoverTable(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the file is damaged: %v", r)
	}
}

func columnNames(table *parquet.File) []string {
	var names []string
	for _, field := range table.Schema().Fields() {
		names = append(names, field.Name())
	}
	return names
}

// isText reports whether a column has one text per row.
func isText(table *parquet.File, name string) bool {
	leaf, ok := table.Schema().Lookup(name)
	return ok && leaf.MaxRepetitionLevel == 0 && leaf.Node.Type().Kind() == parquet.ByteArray
}

func (s *File) openParquet(at Position) (reader, error) {
	f, table, err := s.openTable()
	if err != nil {
		return nil, err
	}
	r := &parquetReader{source: s, file: f, rows: uint64(table.NumRows())}
	if err := r.begin(table, at.Row); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// begin opens the columns at a row.
func (r *parquetReader) begin(table *parquet.File, row uint64) (err error) {
	defer recoverTable(&err)
	r.at = row
	if !r.source.content.chat {
		if !isText(table, r.source.content.field) {
			return fmt.Errorf("column %q does not hold text", r.source.content.field)
		}
		leaf, _ := table.Schema().Lookup(r.source.content.field)
		r.text = &parquetColumn{groups: table.RowGroups(), column: leaf.ColumnIndex}
		return r.text.seek(row)
	}
	r.columns = parquetFields(table, r.source.content.wants)
	for _, field := range r.columns {
		for _, c := range field.columns {
			if err := c.seek(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close closes the file.
func (r *parquetReader) Close() error {
	if r.text != nil {
		r.text.close()
	}
	for _, field := range r.columns {
		for _, c := range field.columns {
			c.close()
		}
	}
	return r.file.Close()
}

// nextRow returns the next row as JSON.
func (r *parquetReader) nextRow() (row []byte, err error) {
	defer recoverTable(&err)
	if r.at == r.rows {
		return nil, io.EOF
	}
	r.at++
	return parquetRow(r.columns)
}

func (r *parquetReader) next() (p *Piece, err error) {
	defer func() {
		if err != nil && !errors.Is(err, io.EOF) {
			err = fmt.Errorf("%q row %d: %w", r.source.Path, r.at+1, err)
		}
	}()
	defer recoverTable(&err)
	p = &Piece{line: r.at + 1}
	if r.text != nil {
		err = r.nextTexts(p)
	} else {
		err = r.nextRows(p)
	}
	if err != nil {
		return nil, err
	}
	p.End = Position{Row: r.at}
	if r.rows > 0 {
		p.End.Read = uint64(float64(r.source.Size) * min(1, float64(r.at)/float64(r.rows)))
	}
	return p, nil
}

func (r *parquetReader) nextTexts(p *Piece) error {
	for size := 0; size < pieceBytes && len(p.documents) < pieceDocuments; r.at++ {
		v, err := r.text.peek()
		if err != nil {
			if errors.Is(err, io.EOF) && len(p.documents) > 0 {
				break
			}
			return err
		}
		var document []byte
		if !v.IsNull() {
			document = slices.Clone(v.ByteArray()) // of a dictionary it may be one of many
		}
		size += len(document)
		if len(document) > lineBytesMax {
			return fmt.Errorf("the text has %d bytes, more than %d", len(document), lineBytesMax)
		}
		p.documents = append(p.documents, document)
		r.text.ahead = r.text.ahead[1:]
	}
	return nil
}

// nextRows reads rows as JSON.
func (r *parquetReader) nextRows(p *Piece) error {
	for size := 0; size < pieceBytes && len(p.lines) < pieceDocuments && r.at < r.rows; {
		row, err := r.nextRow()
		if err != nil {
			return err
		}
		size += len(row)
		p.lines = append(p.lines, row)
	}
	if len(p.lines) == 0 {
		return io.EOF
	}
	return nil
}

// parquetColumn reads the values of a column, of all row groups.
type parquetColumn struct {
	groups []parquet.RowGroup
	column int

	group  int // the open one
	pages  parquet.Pages
	values parquet.ValueReader // of the open page

	buf   [64]parquet.Value
	ahead []parquet.Value // read, and not yet taken
}

// close closes the open page.
func (c *parquetColumn) close() {
	if c.pages != nil {
		c.pages.Close()
	}
}

// open opens the pages of the group.
func (c *parquetColumn) open() error {
	chunk := c.groups[c.group].ColumnChunks()[c.column].(*parquet.FileColumnChunk)
	m := chunk.File().Metadata().RowGroups[c.group].Columns[c.column].MetaData
	leaf := leafOf(chunk.File().Root(), c.column)
	if leaf == nil {
		return fmt.Errorf("the file is damaged: it has no column %d", c.column)
	}
	bounds := pageBounds{pageBytesMax, leaf.Type().Kind(), leaf.MaxRepetitionLevel(), leaf.MaxDefinitionLevel()}
	if err := bounds.check(chunk.File(), m); err != nil {
		return err
	}
	c.pages = chunk.Pages()
	return nil
}

// leafOf returns the column below c that holds values and has that index, nil if there is none.
func leafOf(c *parquet.Column, index int) *parquet.Column {
	if c.Leaf() && c.Index() == index {
		return c
	}
	for _, below := range c.Columns() {
		if leaf := leafOf(below, index); leaf != nil {
			return leaf
		}
	}
	return nil
}

// seek moves to a row.
func (c *parquetColumn) seek(row uint64) error {
	for c.group < len(c.groups) && row >= uint64(c.groups[c.group].NumRows()) {
		row -= uint64(c.groups[c.group].NumRows())
		c.group++
	}
	if c.group == len(c.groups) {
		return nil
	}
	if err := c.open(); err != nil || row == 0 {
		return err
	}
	return c.pages.SeekToRow(int64(row))
}

// read reads at least one value unless the table has ended.
func (c *parquetColumn) read(buf []parquet.Value) (int, error) {
	for {
		if c.values != nil {
			n, err := c.values.ReadValues(buf)
			if n > 0 {
				return n, nil
			}
			if err == nil || !errors.Is(err, io.EOF) {
				return 0, errors.Join(err, errors.New("a page gave no values"))
			}
			c.values = nil
		}
		if c.group == len(c.groups) {
			return 0, io.EOF
		}
		if c.pages == nil {
			if err := c.open(); err != nil {
				return 0, err
			}
		}
		page, err := c.pages.ReadPage()
		if errors.Is(err, io.EOF) {
			err = c.pages.Close()
			c.pages = nil
			c.group++
		} else if err == nil {
			c.values = page.Values()
		}
		if err != nil {
			return 0, err
		}
	}
}

// peek returns the next value without taking it, or io.EOF.
func (c *parquetColumn) peek() (parquet.Value, error) {
	if len(c.ahead) == 0 {
		n, err := c.read(c.buf[:])
		if err != nil {
			return parquet.Value{}, err
		}
		c.ahead = c.buf[:n]
	}
	return c.ahead[0], nil
}

// take returns the next value, which must be there.
func (c *parquetColumn) take() (parquet.Value, error) {
	v, err := c.peek()
	if errors.Is(err, io.EOF) {
		err = errors.New("the column ends before the table")
	}
	if err == nil {
		c.ahead = c.ahead[1:]
	}
	return v, err
}

// fieldNames lists the fields of an object, for messages.
func fieldNames[V any](object map[string]V) string {
	names := slices.Sorted(maps.Keys(object))
	if len(names) > 12 {
		names = append(names[:12], "...")
	}
	return strings.Join(names, ", ")
}
