package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"unicode/utf8"

	"github.com/entrain-network/entrain/tensor"
)

// An Entry is a tensor in a safetensors file.
type Entry struct {
	Name       string
	DType      DType
	Shape      []int
	Begin, End uint64 // its bytes, counted from the end of the header
}

// appendHeader appends the header of a file: its length in 8 bytes, and JSON padded with spaces to
// a multiple of 8. The fields come in the order in which Hugging Face's own writer has them.
func appendHeader(dst []byte, entries []Entry) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, 8)...)
	dst = append(dst, `{"__metadata__":{"format":"pt"}`...)
	for _, e := range entries {
		dst = append(dst, ',')
		dst = appendString(dst, e.Name)
		dst = append(dst, `:{"dtype":"`...)
		dst = append(dst, e.DType.String()...)
		dst = append(dst, `","shape":[`...)
		for i, d := range e.Shape {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, int64(d), 10)
		}
		dst = append(dst, `],"data_offsets":[`...)
		dst = strconv.AppendUint(dst, e.Begin, 10)
		dst = append(dst, ',')
		dst = strconv.AppendUint(dst, e.End, 10)
		dst = append(dst, "]}"...)
	}
	dst = append(dst, '}')
	for (len(dst)-at)%8 != 0 {
		dst = append(dst, ' ')
	}
	putUint64(dst[at:], uint64(len(dst)-at-8))
	return dst
}

// appendString appends s as a JSON string, with the fewest escapes that JSON allows.
func appendString(dst []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("checkpoint: a string has no JSON: " + err.Error())
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// parseHeader reads the JSON of a header that describes dataBytes bytes, and returns its entries in
// the order of those bytes. It refuses ambiguous headers: repeated names and fields, unknown
// fields, tensors that overlap, leave gaps or do not fill the file exactly, and metadata of another
// framework.
func parseHeader(b []byte, dataBytes uint64) ([]Entry, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("header is not UTF-8")
	}
	b = bytes.TrimRight(b, " ")
	if len(b) == 0 || b[0] != '{' {
		return nil, errors.New("header does not begin with '{'")
	}
	p := headerParser{json: json.NewDecoder(bytes.NewReader(b))}
	p.json.UseNumber()
	entries, err := p.header()
	if err != nil {
		return nil, fmt.Errorf("header, byte %d: %w", p.json.InputOffset(), err)
	}
	if p.json.InputOffset() != int64(len(b)) {
		return nil, fmt.Errorf("header continues after its end at byte %d", p.json.InputOffset())
	}
	if err := checkEntries(entries, dataBytes); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return entries, nil
}

// checkEntries sorts the entries by their bytes and checks that together they are a layout and fill
// dataBytes.
func checkEntries(entries []Entry, dataBytes uint64) error {
	sort.SliceStable(entries, func(i, j int) bool { return entries[i].Begin < entries[j].Begin })
	specs := make([]tensor.Spec, len(entries))
	for i, e := range entries {
		specs[i] = tensor.Spec{Name: e.Name, Shape: e.Shape}
	}
	if err := tensor.Check(specs); err != nil {
		return err
	}
	var at uint64
	for _, e := range entries {
		n := uint64(1)
		for _, d := range e.Shape {
			n *= uint64(d) // no overflow: tensor.Check
		}
		if e.Begin != at || e.End < e.Begin || e.End-e.Begin != n*e.DType.size() {
			return fmt.Errorf("tensor %q of %s%v has bytes %d to %d, want %d to %d", e.Name, e.DType, e.Shape, e.Begin, e.End, at, at+n*e.DType.size())
		}
		at = e.End
	}
	if at != dataBytes {
		return fmt.Errorf("tensors end at byte %d of %d", at, dataBytes)
	}
	return nil
}

// headerParser reads a header token by token: json.Unmarshal would take the last of repeated fields
// and match names in any case.
type headerParser struct{ json *json.Decoder }

func (p headerParser) header() ([]Entry, error) {
	var entries []Entry
	metadata := false
	err := p.object(func(name string) error {
		if name == "__metadata__" {
			if metadata {
				return errors.New(`"__metadata__" is repeated`)
			}
			metadata = true
			return p.metadata()
		}
		if len(entries) == tensor.MaxTensors {
			return fmt.Errorf("more than %d tensors", tensor.MaxTensors)
		}
		e, err := p.entry(name)
		if err != nil {
			return fmt.Errorf("tensor %.80q: %w", name, err)
		}
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

// object reads an object and calls field at every value, which field must consume.
func (p headerParser) object(field func(name string) error) error {
	if err := p.delim('{'); err != nil {
		return err
	}
	for p.json.More() {
		name, err := p.string()
		if err != nil {
			return err
		}
		if err := field(name); err != nil {
			return err
		}
	}
	return p.delim('}')
}

// metadata reads the map of strings that a file may carry. Its one entry with a meaning is
// "format".
func (p headerParser) metadata() error {
	format := false
	return p.object(func(name string) error {
		value, err := p.string()
		if err != nil {
			return err
		}
		if name == "format" {
			if format || value != "pt" {
				return fmt.Errorf(`metadata "format" is %.80q or repeated, want "pt" once`, value)
			}
			format = true
		}
		return nil
	})
}

func (p headerParser) entry(name string) (Entry, error) {
	e := Entry{Name: name}
	var dtype, shape, offsets bool
	err := p.object(func(field string) error {
		switch {
		case field == "dtype" && !dtype:
			dtype = true
			s, err := p.string()
			if err != nil {
				return err
			}
			e.DType, err = parseDType(s)
			return err
		case field == "shape" && !shape:
			shape = true
			return p.array(tensor.MaxDims, func(n uint64) {
				e.Shape = append(e.Shape, int(min(n, math.MaxInt))) // tensor.Check refuses a clamped size
			})
		case field == "data_offsets" && !offsets:
			offsets = true
			var list []uint64
			if err := p.array(2, func(n uint64) { list = append(list, n) }); err != nil {
				return err
			}
			if len(list) != 2 {
				return errors.New("data_offsets must be two numbers")
			}
			e.Begin, e.End = list[0], list[1]
			return nil
		}
		return fmt.Errorf("field %.80q is unknown or repeated", field)
	})
	if err == nil && !(dtype && shape && offsets) {
		err = errors.New("dtype, shape or data_offsets is missing")
	}
	return e, err
}

// array reads an array of at most max whole numbers.
func (p headerParser) array(max int, number func(uint64)) error {
	if err := p.delim('['); err != nil {
		return err
	}
	for p.json.More() {
		if max--; max < 0 {
			return errors.New("array is too long")
		}
		t, err := p.json.Token()
		if err != nil {
			return err
		}
		n, ok := t.(json.Number)
		if !ok {
			return fmt.Errorf("found %.80q, want a number", fmt.Sprint(t))
		}
		v, err := strconv.ParseUint(n.String(), 10, 63)
		if err != nil {
			return fmt.Errorf("%.80q is not an integer in range", n)
		}
		number(v)
	}
	return p.delim(']')
}

func (p headerParser) string() (string, error) {
	t, err := p.json.Token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("found %.80q, want a string", fmt.Sprint(t))
	}
	return s, nil
}

func (p headerParser) delim(want json.Delim) error {
	t, err := p.json.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("found %.80q, want %q", fmt.Sprint(t), want.String())
	}
	return nil
}
