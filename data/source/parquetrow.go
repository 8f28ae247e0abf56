package source

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// parquetField is a column of a table whose values are lists or objects too, with the columns of
// its leaves in order.
type parquetField struct {
	node    parquet.Field
	columns []*parquetColumn
}

// parquetFields returns the columns of a table that wants names, or all if it is nil.
func parquetFields(table *parquet.File, wants []string) (list []parquetField) {
	n := 0
	for _, node := range table.Schema().Fields() {
		field := parquetField{node: node}
		for range leavesOf(node) {
			field.columns = append(field.columns, &parquetColumn{groups: table.RowGroups(), column: n})
			n++
		}
		if wants == nil || slices.Contains(wants, node.Name()) {
			list = append(list, field)
		}
	}
	return list
}

// leavesOf returns the number of leaves below a node.
func leavesOf(node parquet.Node) (n int) {
	if node.Leaf() {
		return 1
	}
	for _, f := range node.Fields() {
		n += leavesOf(f)
	}
	return n
}

// parquetRow returns the next row of columns as a JSON object. Objects in it are without fields
// that are null.
func parquetRow(fields []parquetField) ([]byte, error) {
	var a assembler
	a.open('{')
	for _, f := range fields {
		a.key(f.node.Name())
		if err := a.value(f.node, f.columns, 0, 0); err != nil {
			return nil, fmt.Errorf("column %q: %w", f.node.Name(), err)
		}
	}
	a.close('}')
	return a.b, a.check()
}

// An assembler makes JSON of the values of leaves, by their levels: the definition level of a value
// says how many of the optional and repeated nodes above it are there, its repetition level at
// which of the repeated ones it goes on.
type assembler struct{ jsonWriter }

// member appends a field of an object.
func (a *assembler) member(node parquet.Field, columns []*parquetColumn, repeated, defined int) error {
	from := a.key(node.Name())
	err := a.value(node, columns, repeated, defined)
	a.dropNull(from)
	return err
}

// value appends the value of a node that has repeated repeated ones above it, and defined optional
// or repeated ones.
func (a *assembler) value(node parquet.Node, columns []*parquetColumn, repeated, defined int) error {
	if node.Optional() {
		defined++
		if there, err := a.there(columns, defined, "null"); err != nil || !there {
			return err
		}
	}
	if node.Repeated() {
		return a.list(columns, repeated, defined, func(repeated, defined int) error {
			return a.one(node, columns, repeated, defined)
		})
	}
	return a.one(node, columns, repeated, defined)
}

// there reports whether the next value is of a node at a definition level. If not, it takes it and
// appends instead.
func (a *assembler) there(columns []*parquetColumn, defined int, instead string) (bool, error) {
	if len(columns) > 0 {
		first, err := columns[0].peek()
		if err != nil || first.DefinitionLevel() >= defined {
			return true, notEnd(err)
		}
	}
	for _, c := range columns {
		if _, err := c.take(); err != nil {
			return false, err
		}
	}
	a.word(instead)
	return false, nil
}

// list appends the elements of a repeated node.
func (a *assembler) list(columns []*parquetColumn, repeated, defined int, one func(repeated, defined int) error) error {
	repeated, defined = repeated+1, defined+1
	if there, err := a.there(columns, defined, "[]"); err != nil || !there {
		return err
	}
	a.open('[')
	for {
		if err := errors.Join(one(repeated, defined), a.check()); err != nil {
			return err
		}
		next, err := columns[0].peek()
		if err != nil || next.RepetitionLevel() != repeated {
			a.close(']')
			return notEnd(err)
		}
	}
}

func notEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// one appends a value that is there.
func (a *assembler) one(node parquet.Node, columns []*parquetColumn, repeated, defined int) error {
	if node.Leaf() {
		v, err := columns[0].take()
		if err == nil {
			a.scalar(v)
		}
		return err
	}
	fields := node.Fields()
	// A list is a group of one repeated group of one element.
	if len(fields) == 1 && fields[0].Repeated() {
		return a.list(columns, repeated, defined, func(repeated, defined int) error {
			if inner := fields[0]; inner.Leaf() || len(inner.Fields()) != 1 {
				return a.one(inner, columns, repeated, defined)
			}
			return a.value(fields[0].Fields()[0], columns, repeated, defined)
		})
	}
	a.open('{')
	for _, f := range fields {
		n := leavesOf(f)
		if err := a.member(f, columns[:n], repeated, defined); err != nil {
			return err
		}
		columns = columns[n:]
	}
	a.close('}')
	return nil
}

func (a *assembler) scalar(v parquet.Value) {
	switch v.Kind() {
	case parquet.Boolean:
		a.word(strconv.FormatBool(v.Boolean()))
	case parquet.Int32:
		a.word(strconv.FormatInt(int64(v.Int32()), 10))
	case parquet.Int64:
		a.word(strconv.FormatInt(v.Int64(), 10))
	case parquet.Float:
		a.float(float64(v.Float()))
	case parquet.Double:
		a.float(v.Double())
	case parquet.ByteArray, parquet.FixedLenByteArray:
		a.text(v.ByteArray())
	default:
		a.word("null")
	}
}
