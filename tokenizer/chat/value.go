package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The values of a template are nil, bool, int64, float64, string, []any, *Dict and those below. A
// list is never changed once it is made.
type (
	// A Dict is an object of JSON, which keeps its order.
	Dict struct {
		keys   []string
		values map[string]any
	}
	namespace struct{ Dict }
	loop      struct {
		at    int
		items []any
	}
	function  func(r *renderer, args []any, named *Dict) (any, error)
	undefined string // the name of what is not there
)

func (d *Dict) get(key string) (any, bool) {
	v, ok := d.values[key]
	return v, ok
}

func (d *Dict) set(key string, v any) {
	if d.values == nil {
		d.values = make(map[string]any)
	}
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = v
}

func (d *Dict) clone() *Dict {
	c := &Dict{}
	for _, k := range d.keys {
		c.set(k, d.values[k])
	}
	return c
}

// decodeJSON returns JSON as a value, and passes every string through text.
func decodeJSON(b []byte, text func(string) string) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := decodeValue(d, text, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more follows after the JSON's end")
	}
	return v, nil
}

func decodeValue(d *json.Decoder, text func(string) string, depth int) (any, error) {
	if depth > depthMax {
		return nil, fmt.Errorf("the JSON nests deeper than %d", depthMax)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case string:
		return text(t), nil
	case json.Number:
		if n, err := t.Int64(); err == nil {
			return n, nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			list := []any{}
			for d.More() {
				v, err := decodeValue(d, text, depth+1)
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			_, err := d.Token()
			return list, err
		}
		o := &Dict{}
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d, text, depth+1)
			if err != nil {
				return nil, err
			}
			o.set(text(k.(string)), v)
		}
		_, err := d.Token()
		return o, err
	}
	return t, nil // nil or a bool
}

// kindOf names the kind of a value in errors.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "a truth value"
	case int64, float64:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "a list"
	case *Dict:
		return "a mapping"
	case undefined:
		return fmt.Sprintf("%q, which is undefined", string(v))
	}
	return "a function or a namespace"
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// number returns v as a number of Python, where truth values are numbers too.
func number(v any) (i int64, f float64, whole, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			i = 1
		}
		return i, float64(i), true, true
	case int64:
		return v, float64(v), true, true
	case float64:
		return 0, v, false, true
	}
	return 0, 0, false, false
}

// floatText returns a float as Python prints it.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// A printer writes a value as Python prints it, or as JSON.
type printer struct {
	r      *renderer
	b      strings.Builder
	json   bool
	indent string // of JSON; "" for one line
	item   string // between items
	colon  string
	sorted bool
}

func (p *printer) put(s string) error {
	p.b.WriteString(s)
	return p.r.spend(len(s) + stepWork)
}

func (p *printer) print(v any, depth int) error {
	if depth > depthMax {
		return fmt.Errorf("a value nests deeper than %d", depthMax)
	}
	word := func(python, js string) error {
		if p.json {
			return p.put(js)
		}
		return p.put(python)
	}
	switch v := v.(type) {
	case nil:
		return word("None", "null")
	case bool:
		if v {
			return word("True", "true")
		}
		return word("False", "false")
	case int64:
		return p.put(strconv.FormatInt(v, 10))
	case float64:
		return p.put(floatText(v))
	case string:
		if p.json {
			return p.put(jsonString(v))
		}
		return p.put(pythonString(v))
	case []any:
		return p.list("[", "]", len(v), depth, func(i int) error { return p.print(v[i], depth+1) })
	case *Dict:
		keys := v.keys
		if p.sorted {
			keys = slices.Sorted(slices.Values(keys))
		}
		return p.list("{", "}", len(keys), depth, func(i int) error {
			if err := p.print(keys[i], depth+1); err != nil {
				return err
			}
			if err := p.put(p.colon); err != nil {
				return err
			}
			return p.print(v.values[keys[i]], depth+1)
		})
	}
	return fmt.Errorf("%s has no text", kindOf(v))
}

func (p *printer) list(open, end string, n, depth int, item func(i int) error) error {
	line := ""
	if p.indent != "" && n > 0 {
		line = "\n" + strings.Repeat(p.indent, depth)
	}
	if err := p.put(open); err != nil {
		return err
	}
	for i := range n {
		if i > 0 {
			if err := p.put(p.item); err != nil {
				return err
			}
		}
		if line != "" {
			if err := p.put(line + p.indent); err != nil {
				return err
			}
		}
		if err := item(i); err != nil {
			return err
		}
	}
	return p.put(line + end)
}

// jsonString is json.dumps(s, ensure_ascii=False).
func jsonString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		if at := strings.IndexRune("\"\\\n\r\t\b\f", c); at >= 0 {
			b.WriteByte('\\')
			b.WriteByte("\"\\nrtbf"[at])
		} else if c < ' ' {
			fmt.Fprintf(&b, `\u%04x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// pythonString is repr(s).
func pythonString(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, c := range s {
		switch {
		case c == quote || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case strings.ContainsRune("\n\r\t", c):
			b.WriteByte('\\')
			b.WriteByte("nrt"[strings.IndexRune("\n\r\t", c)])
		case strconv.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	b.WriteRune(quote)
	return b.String()
}
