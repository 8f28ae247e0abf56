package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
)

// Arrow (https://arrow.apache.org/docs/format/Columnar.html), as Hugging Face's datasets library
// saves its tables: a stream of messages, or a file of them, which begins with ARROW1. The first
// message has the schema, each of the others a batch of rows:
//
//	-1, U32 | length of the description, U32 | description, a FlatBuffer | body
//
// The body has the buffers of the columns, in the order of the schema.

const (
	arrowMagic          = "ARROW1\x00\x00"
	arrowDescriptionMax = 16 << 20
	arrowBodyMax        = 1 << 30 // of what is read of a batch
	arrowFieldsMax      = 1 << 14 // of a schema, at all depths
	arrowDepthMax       = 64
	arrowNameMax        = 1 << 10 // of a column
	arrowValuesMax      = 64      // for each byte of a batch: what is null has no bits
)

// arrowKind is a type of the FlatBuffer's union Type.
type arrowKind int

const (
	arrowNull      arrowKind = 1
	arrowInt       arrowKind = 2
	arrowFloat     arrowKind = 3
	arrowBinary    arrowKind = 4
	arrowUtf8      arrowKind = 5
	arrowBool      arrowKind = 6
	arrowList      arrowKind = 12
	arrowStruct    arrowKind = 13
	arrowFixedList arrowKind = 16
	arrowMap       arrowKind = 17
	arrowLargeBin  arrowKind = 19
	arrowLargeUtf8 arrowKind = 20
	arrowLargeList arrowKind = 21
)

// arrowBuffers is the number of buffers of each type, 0 of those that are not known.
var arrowBuffers = [...]int{
	arrowInt: 2, arrowFloat: 2, arrowBinary: 3, arrowUtf8: 3, arrowBool: 2,
	7: 2, 8: 2, 9: 2, 10: 2, 11: 2, // decimals and times
	arrowList: 2, arrowStruct: 1, 15: 2, arrowFixedList: 1, arrowMap: 2, 18: 2, arrowLargeBin: 3, arrowLargeUtf8: 3, arrowLargeList: 2,
}

// arrowField is a column of a table, or a part of one.
type arrowField struct {
	name       string
	kind       arrowKind
	bytes      int  // of an integer, a float, or the offsets of a text or list
	unsigned   bool // of an integer
	size       int  // items in each list of a fixed size
	dictionary bool // the values are in a dictionary, which is not read here
	inside     []arrowField
}

// arrowReader reads the rows of a table as JSON.
type arrowReader struct {
	source *File
	file   *os.File
	fields []arrowField
	wants  []string       // the columns to read; nil: all
	at     int64          // where the next message begins
	row    uint64         // the next
	batch  []*arrowColumn // what is wanted of the batch that has it
	length int            // rows of the batch
	i      int            // the next of them
}

func (s *File) openArrow(at Position) (reader, error) {
	f, err := os.Open(s.Path)
	if err != nil {
		return nil, err
	}
	r := &arrowReader{source: s, file: f, wants: s.content.wants}
	if err := r.begin(at.Row); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close closes the file.
func (r *arrowReader) Close() error { return r.file.Close() }

// begin reads the schema and moves to a row.
func (r *arrowReader) begin(row uint64) error {
	var magic [len(arrowMagic)]byte
	if n, err := r.file.ReadAt(magic[:], 0); n == len(magic) && string(magic[:]) == arrowMagic {
		r.at = int64(n)
	} else if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	f, kind, header, _, err := r.message()
	if err != nil {
		return fmt.Errorf("it is not a table of Arrow: %w", err)
	}
	if kind != 1 || f.number(header, 0, 2) != 0 {
		return errors.New("it is not a little-endian table of Arrow: it does not begin with a schema")
	}
	left := arrowFieldsMax
	if r.fields, err = arrowFields(f, header, 1, 0, &left); err != nil {
		return err
	}
	for r.row < row {
		if r.i == r.length {
			if err := r.nextBatch(); err != nil {
				return err
			}
		}
		n := min(uint64(r.length-r.i), row-r.row)
		r.i, r.row = r.i+int(n), r.row+n
	}
	return nil
}

// message reads the description of the next message, whose body is at body. It returns io.EOF at
// the end.
func (r *arrowReader) message() (f *flat, kind uint64, header int, body int64, err error) {
	var head [8]byte
	n, err := r.file.ReadAt(head[:], r.at)
	if n < 4 || n < 8 && binary.LittleEndian.Uint32(head[:]) == math.MaxUint32 {
		if n == 0 && errors.Is(err, io.EOF) {
			return nil, 0, 0, 0, io.EOF
		}
		return nil, 0, 0, 0, io.ErrUnexpectedEOF
	}
	size, from := binary.LittleEndian.Uint32(head[:]), r.at+4 // as in old versions
	if size == math.MaxUint32 {
		size, from = binary.LittleEndian.Uint32(head[4:]), r.at+8
	}
	if size == 0 {
		return nil, 0, 0, 0, io.EOF
	}
	if size > arrowDescriptionMax || uint64(from)+uint64(size) > r.source.Size {
		return nil, 0, 0, 0, fmt.Errorf("a message's description has %d bytes", size)
	}
	f = &flat{b: make([]byte, size)}
	if _, err := r.file.ReadAt(f.b, from); err != nil {
		return nil, 0, 0, 0, err
	}
	root := f.follow(0)
	kind, header = f.number(root, 1, 1), f.table(root, 2)
	length := f.number(root, 3, 8)
	body = from + int64(size)
	if f.bad || length > r.source.Size-uint64(body) {
		return nil, 0, 0, 0, errors.New("a message is damaged, or the file was cut off")
	}
	r.at = body + int64(length)
	return f, kind, header, body, nil
}

// arrowFields reads the fields in a vector of a table, at most *left.
func arrowFields(f *flat, table, vector, depth int, left *int) ([]arrowField, error) {
	at, n := f.list(table, vector, 4)
	if *left -= n; *left < 0 || depth > arrowDepthMax {
		return nil, errors.New("the schema has too many columns, or too deep ones")
	}
	fields := make([]arrowField, n)
	for i := range fields {
		t := f.follow(at + 4*i)
		c := arrowField{name: f.text(t, 0, arrowNameMax), kind: arrowKind(f.number(t, 2, 1)), dictionary: f.field(t, 4) != 0}
		of := f.table(t, 3)
		switch c.kind {
		case arrowInt:
			c.bytes, c.unsigned = int(f.number(of, 0, 4)/8), f.number(of, 1, 1) == 0
		case arrowFloat:
			c.bytes = 2 << min(f.number(of, 0, 2), 2)
		case arrowBinary, arrowUtf8, arrowList, arrowMap:
			c.bytes = 4
		case arrowLargeBin, arrowLargeUtf8, arrowLargeList:
			c.bytes = 8
		case arrowFixedList:
			c.size = int(f.number(of, 0, 4))
		}
		var err error
		if c.inside, err = arrowFields(f, t, 5, depth+1, left); err != nil {
			return nil, err
		}
		lists := []arrowKind{arrowList, arrowLargeList, arrowFixedList, arrowMap}
		switch {
		case f.bad:
			return nil, errors.New("the schema is damaged")
		case c.kind != arrowNull && (int(c.kind) >= len(arrowBuffers) || arrowBuffers[c.kind] == 0):
			return nil, fmt.Errorf("column %q is of a type (%d) that is not read here: save the data as parquet", c.name, c.kind)
		case slices.Contains(lists, c.kind) != (len(c.inside) == 1) && c.kind != arrowStruct && !c.dictionary,
			c.kind == arrowInt && c.bytes != 1 && c.bytes != 2 && c.bytes != 4 && c.bytes != 8:
			return nil, fmt.Errorf("column %q is damaged", c.name)
		}
		fields[i] = c
	}
	return fields, nil
}

// arrowColumn is a column of a batch.
type arrowColumn struct {
	*arrowField
	length  int
	valid   []byte // a bit for each value, or empty if all are there
	offsets []byte // of texts and lists
	values  []byte
	inside  []*arrowColumn
}

// arrowBatch hands out the nodes and buffers of a batch in the order of the schema.
type arrowBatch struct {
	f              *flat
	file           io.ReaderAt
	body, bodyEnd  int64
	nodes, buffers int // where they are described
	nodesLeft      int
	buffersLeft    int
	left           int64 // bytes that may still be read
	valuesLeft     int64 // of the columns that are wanted
}

// nextBatch reads what is wanted of the next batch of rows, or returns io.EOF.
func (r *arrowReader) nextBatch() error {
	f, kind, header, body, err := r.message()
	for err == nil && kind == 2 { // dictionaries: their columns are not read
		f, kind, header, body, err = r.message()
	}
	if err != nil {
		return err
	}
	b := arrowBatch{f: f, file: r.file, body: body, bodyEnd: r.at, left: min(arrowBodyMax, r.at-body), valuesLeft: arrowValuesMax * (1 + r.at - body)}
	b.nodes, b.nodesLeft = f.list(header, 1, 16)
	b.buffers, b.buffersLeft = f.list(header, 2, 16)
	length := f.number(header, 0, 8)
	switch {
	case kind != 3 || f.bad:
		return errors.New("a batch is damaged")
	case f.field(header, 3) != 0:
		return errors.New("it is compressed, which is not read here: save the data by datasets' save_to_disk, or as parquet")
	case length > arrowValuesMax*uint64(1+r.at-body):
		return fmt.Errorf("a batch of %d rows has %d bytes", length, r.at-body)
	}
	r.batch, r.length, r.i = nil, int(length), 0
	for i := range r.fields {
		wanted := r.wants == nil || slices.Contains(r.wants, r.fields[i].name)
		c, err := b.column(&r.fields[i], wanted)
		if err == nil && wanted && c.length != r.length {
			err = fmt.Errorf("it has %d values in %d rows", c.length, r.length)
		}
		if err != nil {
			return fmt.Errorf("column %q: %w", r.fields[i].name, err)
		}
		if wanted {
			r.batch = append(r.batch, c)
		}
	}
	return nil
}

// column takes the next column, and reads it if it is wanted.
func (b *arrowBatch) column(field *arrowField, wanted bool) (c *arrowColumn, err error) {
	if b.nodesLeft--; b.nodesLeft < 0 {
		return nil, errors.New("it is missing in a batch")
	}
	c = &arrowColumn{arrowField: field, length: int(min(b.f.uint(b.nodes, 8), math.MaxInt32))}
	b.nodes += 16
	if wanted {
		b.valuesLeft -= int64(c.length)
	}
	if b.valuesLeft < 0 {
		return nil, errors.New("it has more values than its bytes can hold")
	}
	if wanted && field.dictionary {
		return nil, errors.New("its values are in a dictionary, which is not read here: save the data as parquet")
	}
	n := arrowBuffers[field.kind]
	if field.dictionary {
		n = 2
	}
	for i := range n {
		buf, err := b.buffer(wanted)
		if err != nil {
			return nil, err
		}
		switch {
		case i == 0:
			c.valid = buf
		case i == n-1 && field.kind != arrowList && field.kind != arrowLargeList && field.kind != arrowMap:
			c.values = buf
		default:
			c.offsets = buf
		}
	}
	if !field.dictionary {
		for i := range field.inside {
			in, err := b.column(&field.inside[i], wanted)
			if err != nil {
				return nil, err
			}
			c.inside = append(c.inside, in)
		}
	}
	if wanted {
		err = c.check()
	}
	return c, err
}

// buffer takes the next buffer, and reads it if it is wanted.
func (b *arrowBatch) buffer(wanted bool) ([]byte, error) {
	if b.buffersLeft--; b.buffersLeft < 0 {
		return nil, errors.New("a buffer is missing in a batch")
	}
	offset, length := b.f.uint(b.buffers, 8), b.f.uint(b.buffers+8, 8)
	b.buffers += 16
	if !wanted || length == 0 {
		return nil, nil
	}
	size := uint64(b.bodyEnd - b.body)
	if offset > size || length > size-offset || int64(length) > b.left {
		return nil, fmt.Errorf("a buffer of %d bytes at %d is not in the batch's %d, or the batch is too large: save the data in smaller batches", length, offset, size)
	}
	b.left -= int64(length)
	buf := make([]byte, length)
	_, err := b.file.ReadAt(buf, b.body+int64(offset))
	return buf, err
}

// check checks that the buffers hold the values.
func (c *arrowColumn) check() error {
	need := func(buf []byte, n int) bool { return len(buf) >= n }
	ok := len(c.valid) == 0 || need(c.valid, (c.length+7)/8)
	switch c.kind {
	case arrowBool:
		ok = ok && need(c.values, (c.length+7)/8)
	case arrowInt, arrowFloat:
		ok = ok && need(c.values, c.length*c.bytes)
	case arrowBinary, arrowUtf8, arrowLargeBin, arrowLargeUtf8, arrowList, arrowLargeList, arrowMap:
		ok = ok && (c.length == 0 || need(c.offsets, (c.length+1)*c.bytes))
	case arrowFixedList:
		ok = ok && c.size >= 0 && c.length <= math.MaxInt32/max(1, c.size) && c.inside[0].length >= c.length*c.size
	case arrowStruct:
		for _, in := range c.inside {
			ok = ok && in.length >= c.length
		}
	}
	if !ok {
		return fmt.Errorf("its buffers are too small for %d values", c.length)
	}
	return nil
}

// span returns the part of the values, or of the items inside, that value i is.
func (c *arrowColumn) span(i, most int) (from, to int, err error) {
	if c.kind == arrowFixedList {
		return i * c.size, (i + 1) * c.size, nil
	}
	a, z := littleEndian(c.offsets[i*c.bytes:], c.bytes), littleEndian(c.offsets[(i+1)*c.bytes:], c.bytes)
	if a > z || z > uint64(most) {
		return 0, 0, fmt.Errorf("value %d is from %d to %d of %d", i, a, z, most)
	}
	return int(a), int(z), nil
}

func littleEndian(b []byte, n int) uint64 {
	var word [8]byte
	copy(word[:], b[:n])
	return binary.LittleEndian.Uint64(word[:])
}

// bit returns bit i of b.
func bit(b []byte, i int) bool { return b[i/8]>>(i%8)&1 != 0 }

// appendTo appends value i as JSON.
func (c *arrowColumn) appendTo(w *jsonWriter, i int) error {
	if len(c.valid) > 0 && !bit(c.valid, i) {
		w.word("null")
		return w.check()
	}
	switch c.kind {
	case arrowBool:
		w.word(strconv.FormatBool(bit(c.values, i)))
	case arrowInt:
		n := littleEndian(c.values[i*c.bytes:], c.bytes)
		if shift := 64 - 8*c.bytes; c.unsigned {
			w.word(strconv.FormatUint(n, 10))
		} else {
			w.word(strconv.FormatInt(int64(n<<shift)>>shift, 10))
		}
	case arrowFloat:
		switch n := littleEndian(c.values[i*c.bytes:], c.bytes); c.bytes {
		case 4:
			w.float(float64(math.Float32frombits(uint32(n))))
		case 8:
			w.float(math.Float64frombits(n))
		default:
			w.word("null") // 16 bits have no words of a conversation
		}
	case arrowBinary, arrowUtf8, arrowLargeBin, arrowLargeUtf8:
		from, to, err := c.span(i, len(c.values))
		if err != nil {
			return err
		}
		if to-from > lineBytesMax {
			return fmt.Errorf("the text has %d bytes, more than %d", to-from, lineBytesMax)
		}
		w.text(c.values[from:to])
	case arrowList, arrowLargeList, arrowFixedList, arrowMap:
		from, to, err := c.span(i, c.inside[0].length)
		if err != nil {
			return err
		}
		w.open('[')
		for k := from; k < to; k++ {
			if err := c.inside[0].appendTo(w, k); err != nil {
				return err
			}
		}
		w.close(']')
	case arrowStruct:
		w.open('{')
		for _, in := range c.inside {
			from := w.key(in.name)
			if err := in.appendTo(w, i); err != nil {
				return err
			}
			w.dropNull(from)
		}
		w.close('}')
	default:
		w.word("null")
	}
	return w.check()
}

// nextRow returns the next row as JSON.
func (r *arrowReader) nextRow() ([]byte, error) {
	for r.i == r.length {
		if err := r.nextBatch(); err != nil {
			return nil, err
		}
	}
	var w jsonWriter
	w.open('{')
	for _, c := range r.batch {
		w.key(c.name)
		if err := c.appendTo(&w, r.i); err != nil {
			return nil, fmt.Errorf("column %q: %w", c.name, err)
		}
	}
	w.close('}')
	r.i++
	r.row++
	return w.b, nil
}

func (r *arrowReader) next() (*Piece, error) {
	p := &Piece{line: r.row + 1}
	for size := 0; size < pieceBytes && len(p.lines) < pieceDocuments; {
		row, err := r.nextRow()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%q row %d: %w", r.source.Path, r.row+1, err)
		}
		size += len(row)
		p.lines = append(p.lines, row)
	}
	if len(p.lines) == 0 {
		return nil, io.EOF
	}
	p.End = Position{Row: r.row, Read: min(uint64(r.at), r.source.Size)}
	return p, nil
}

// names returns the names of the columns.
func (r *arrowReader) names() (names []string) {
	for _, f := range r.fields {
		names = append(names, f.name)
	}
	return names
}
