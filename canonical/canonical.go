// Package canonical writes JSON in one spelling for each value, so that a file has one hash:
// indented by two spaces, fields in the order of the struct, only the necessary escapes, and a
// newline at the end. Manifests of data sets and of checkpoints are canonical.
package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// JSON returns the canonical bytes of v. It panics if JSON cannot hold v.
func JSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("canonical: a %T has no JSON: %v", v, err))
	}
	return b.Bytes()
}

// A Value is what Parse reads.
type Value interface {
	// Bytes are its canonical bytes.
	Bytes() []byte
	// Check returns what is wrong with it, or nil.
	Check() error
}

// ErrEdited reports input that is not in canonical form.
var ErrEdited = errors.New("it is not in its canonical form: it was edited")

// Parse reads the canonical bytes of a V, at most most. It refuses all other bytes, such as unknown
// or repeated fields, and what V's Check refuses. Errors call the file what.
func Parse[V Value](b []byte, what string, most int) (V, error) {
	var v, none V
	if len(b) > most {
		return none, fmt.Errorf("%s has %d bytes, more than %d", what, len(b), most)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return none, fmt.Errorf("%s is not JSON of a version that is known: %w", what, err)
	}
	if err := v.Check(); err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	if !bytes.Equal(v.Bytes(), b) {
		return none, fmt.Errorf("%s: %w", what, ErrEdited)
	}
	return v, nil
}
