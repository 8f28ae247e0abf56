package source

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// A jsonWriter makes JSON of the rows of tables.
type jsonWriter struct{ b []byte }

// item puts a comma in front of an item that is not the first.
func (w *jsonWriter) item() {
	if n := len(w.b); n > 0 && w.b[n-1] != '[' && w.b[n-1] != '{' && w.b[n-1] != ':' {
		w.b = append(w.b, ',')
	}
}

func (w *jsonWriter) open(bracket byte) {
	w.item()
	w.b = append(w.b, bracket)
}

func (w *jsonWriter) close(bracket byte) { w.b = append(w.b, bracket) }

// word appends a number, a truth value, null or a list without items.
func (w *jsonWriter) word(s string) {
	w.item()
	w.b = append(w.b, s...)
}

func (w *jsonWriter) text(s []byte) {
	b, _ := json.Marshal(string(s)) // no string fails
	w.word(string(b))
}

func (w *jsonWriter) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.word("null") // JSON has no such numbers
		return
	}
	w.word(strconv.FormatFloat(f, 'g', -1, 64))
}

// key begins a field of an object, and returns where it begins.
func (w *jsonWriter) key(name string) int {
	from := len(w.b)
	w.text([]byte(name))
	w.b = append(w.b, ':')
	return from
}

// dropNull removes the field that begins at from if it is null: a table has every field in every
// row, and null in rows that would not have it as JSON.
func (w *jsonWriter) dropNull(from int) {
	if n := len(w.b) - len(":null"); n > from && string(w.b[n:]) == ":null" {
		w.b = w.b[:from]
	}
}

// check returns an error if there is more than a row may have.
func (w *jsonWriter) check() error {
	if len(w.b) > lineBytesMax {
		return fmt.Errorf("the row has more than %d bytes", lineBytesMax)
	}
	return nil
}
