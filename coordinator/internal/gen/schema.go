package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// schema is what schema.txt says.
type schema struct {
	numbers  []number
	bounds   map[string]string // how errors write a constant
	config   []setting
	parts    []record
	messages []message
	errors   []refusal
}

// number is a Go type for numbers of one thing.
type number struct{ name, typ, doc string }

// message is a kind of message.
type message struct {
	kind        int
	name, noun  string
	value, pays bool
	doc         []string
	fields      []field // their types may be "u8:Vote", "bytes<=N", "hash<=N", "score<=N"
}

// refusal is an error.
type refusal struct {
	number     int
	name, text string
}

// setting is a field of the configuration.
type setting struct {
	field
	least, most string
	key         string // in a specification, or the field's name
	upper       string // the field whose byte of the encoding it shares
	group       bool   // a blank line comes before it
}

// record is a fixed part of the buffer.
type record struct {
	name, prefix, doc string
	bytes             int
	fields            []field
}

// field is a part of a record.
type field struct {
	at, n     int    // n elements; 0 = one, not an array
	typ, name string // typ is the type of the bytes
	goType    string // the type in Go, where it is not that of the bytes
	doc       string
}

// sizes are the lengths of the basic types in bytes.
var sizes = map[string]int{"u8": 1, "bool": 1, "byte": 1, "u16": 2, "u32": 4, "u64": 8, "hash": 32, "key": 32, "string": 32}

// parse reads a schema and checks that fields are aligned and do not overlap.
func parse(text string) (schema, error) {
	s := schema{bounds: map[string]string{}}
	section, group := "", false
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			group = len(words) == 0
			continue
		}
		var err error
		switch {
		case words[0] == "number" && len(words) > 3:
			s.numbers = append(s.numbers, number{words[1], words[2], strings.Join(words[3:], " ")})
		case words[0] == "bound":
			s.bounds[words[1]] = strings.Join(words[2:], " ")
		case words[0] == "config":
			section = words[0]
		case words[0] == "record":
			section = words[0]
			err = s.addRecord(words)
		case words[0] == "message" && len(words) > 4:
			section = words[0]
			err = s.addMessage(words)
		case words[0] == "error" && len(words) > 3:
			err = s.addError(words)
		case section == "config":
			err = s.addSetting(words, group)
		case section == "message":
			err = s.addPart(words)
		default:
			err = s.addField(words)
		}
		if err != nil {
			return s, fmt.Errorf("line %d: %w", n+1, err)
		}
		group = false
	}
	for _, c := range s.config {
		s.parts[0].fields = append(s.parts[0].fields, c.field)
	}
	for i := range s.parts {
		if err := s.check(&s.parts[i]); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *schema) addRecord(words []string) error {
	if len(words) < 5 {
		return fmt.Errorf("a record is: record, name, prefix, length, meaning")
	}
	n, err := strconv.Atoi(words[3])
	s.parts = append(s.parts, record{name: words[1], prefix: words[2], bytes: n, doc: strings.Join(words[4:], " ")})
	return err
}

func (s *schema) addSetting(words []string, group bool) error {
	if len(words) < 6 {
		return fmt.Errorf("a setting is: name, type, offset, range, key, meaning")
	}
	at, err := strconv.Atoi(words[2])
	typ, goType, _ := strings.Cut(words[1], ":")
	c := setting{group: group && len(s.config) > 0, key: words[4]}
	if c.key == "-" {
		c.key = words[0]
	}
	var ok bool
	if c.least, c.most, ok = strings.Cut(words[3], ".."); !ok {
		return fmt.Errorf("range %q is not least..most", words[3])
	}
	doc := words[5:]
	if of, ok := strings.CutPrefix(doc[0], "upper="); ok {
		c.upper, doc = of, doc[1:]
	}
	c.field = field{at: at, typ: typ, goType: goType, name: words[0], doc: strings.Join(doc, " ")}
	s.config = append(s.config, c)
	return err
}

func (s *schema) addField(words []string) error {
	if len(words) < 4 || len(s.parts) == 0 {
		return fmt.Errorf("a field is: offset, type, name, meaning")
	}
	at, err := strconv.Atoi(words[0])
	if err != nil {
		return err
	}
	f := field{at: at, name: words[2], doc: strings.Join(words[3:], " ")}
	typ, count, array := strings.Cut(words[1], "*")
	f.typ, f.goType, _ = strings.Cut(typ, ":")
	if array {
		f.n, err = strconv.Atoi(count)
	}
	r := &s.parts[len(s.parts)-1]
	r.fields = append(r.fields, f)
	return err
}

func (s *schema) addMessage(words []string) error {
	kind, err := strconv.Atoi(words[1])
	if err == nil && kind != len(s.messages) {
		err = fmt.Errorf("kind %d comes after %d", kind, len(s.messages)-1)
	}
	s.messages = append(s.messages, message{
		kind: kind, name: words[2], noun: strings.Join(words[4:], " "),
		value: strings.Contains(words[3], "value"), pays: strings.Contains(words[3], "pays"),
	})
	return err
}

// addPart adds a line of documentation or a field to the last message.
func (s *schema) addPart(words []string) error {
	m := &s.messages[len(s.messages)-1]
	if words[0] == "|" {
		m.doc = append(m.doc, strings.Join(words[1:], " "))
		return nil
	}
	if len(words) < 3 {
		return fmt.Errorf("a field of a message is: type, name, meaning")
	}
	m.fields = append(m.fields, field{typ: words[0], name: words[1], doc: strings.Join(words[2:], " ")})
	return nil
}

func (s *schema) addError(words []string) error {
	number, err := strconv.Atoi(words[1])
	if err == nil && number != len(s.errors)+1 {
		err = fmt.Errorf("error %d comes after %d", number, len(s.errors))
	}
	s.errors = append(s.errors, refusal{number, words[2], strings.Join(words[3:], " ")})
	return err
}

// isNumber reports whether a Go type is one of the schema's numbers.
func (s schema) isNumber(goType string) bool {
	return slices.ContainsFunc(s.numbers, func(n number) bool { return n.name == goType })
}

// size returns the length of one element of a type.
func (s schema) size(typ string) int {
	for _, r := range s.parts {
		if r.name == typ {
			return r.bytes
		}
	}
	return sizes[typ]
}

// check sorts the fields of a record and checks where they lie.
func (s schema) check(r *record) error {
	slices.SortFunc(r.fields, func(a, b field) int { return cmp.Compare(a.at, b.at) })
	end := 0
	for _, f := range r.fields {
		n := s.size(f.typ)
		switch {
		case n == 0:
			return fmt.Errorf("%s.%s: unknown type %q", r.name, f.name, f.typ)
		case f.at < end:
			return fmt.Errorf("%s.%s: overlaps the field before", r.name, f.name)
		case f.at%min(n, 8) != 0 && n <= 8, f.at%8 != 0 && n > 8 && n%8 == 0:
			return fmt.Errorf("%s.%s: not at a multiple of its size", r.name, f.name)
		}
		end = f.at + n*max(1, f.n)
	}
	if end > r.bytes {
		return fmt.Errorf("%s: its fields take %d bytes of %d", r.name, end, r.bytes)
	}
	return nil
}

// gaps returns the bytes of a record that no field covers, as pairs of begin and end.
func (s schema) gaps(r record) [][2]int {
	var list [][2]int
	end := 0
	for _, f := range r.fields {
		if f.at > end {
			list = append(list, [2]int{end, f.at})
		}
		end = f.at + s.size(f.typ)*max(1, f.n)
	}
	if end < r.bytes {
		list = append(list, [2]int{end, r.bytes})
	}
	return list
}
