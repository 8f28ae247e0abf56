package spec

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

const (
	// keysMax bounds the cost of reading a specification: the TOML reader compares each key with
	// its siblings.
	keysMax = 4096
	// unknownMax is the most unknown keys for which an error shows their lines. The TOML reader
	// scans the whole text again for each.
	unknownMax = 8
)

// checkSize rejects text with more keys or tables than any specification has, before it is parsed.
func checkSize(text []byte) error {
	n := 0
	for _, c := range text {
		if c == '=' || c == '[' || c == '.' {
			n++
		}
	}
	if n > keysMax {
		return fmt.Errorf("the specification has %d of the characters '=', '[' and '.', at most %d are allowed", n, keysMax)
	}
	return nil
}

// clip shortens the text of an error that quotes the specification.
func clip(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	return text[:most] + " ..."
}

// checkKeys returns an error naming the keys of text that the form does not have.
func checkKeys(text []byte, form reflect.Type) error {
	var tree map[string]any
	if err := toml.Unmarshal(text, &tree); err != nil {
		return err
	}
	unknown := unknownKeys(nil, "", tree, form)
	if len(unknown) == 0 {
		return nil
	}
	if len(unknown) > unknownMax {
		slices.Sort(unknown)
		return fmt.Errorf("%d unknown keys, among them %s", len(unknown), strings.Join(unknown[:unknownMax], ", "))
	}
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var strict *toml.StrictMissingError
	if err := d.Decode(reflect.New(form).Interface()); errors.As(err, &strict) {
		lines := strings.NewReplacer("~ missing table", "~", "~ missing field", "~").Replace(strict.String())
		return fmt.Errorf("unknown key: %s\n%s", strings.Join(unknown, ", "), lines)
	}
	return fmt.Errorf("unknown key: %s", strings.Join(unknown, ", "))
}

// unknownKeys appends the full names of the keys of tree that match no field tag of the struct t,
// each with the key that is spelled nearly the same.
func unknownKeys(dst []string, prefix string, tree map[string]any, t reflect.Type) []string {
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("toml"), ",")
		fields[strings.ToLower(name)] = t.Field(i).Type
	}
	for k, v := range tree {
		field, ok := fields[strings.ToLower(k)] // the TOML reader ignores case
		if !ok {
			if len(dst) < unknownMax { // of more, few are shown
				if near := Nearest(k, slices.Sorted(maps.Keys(fields))); near != "" {
					k += " (did you mean " + near + "?)"
				}
			}
			dst = append(dst, prefix+k)
			continue
		}
		for field.Kind() == reflect.Pointer || field.Kind() == reflect.Slice {
			field = field.Elem()
		}
		if field.Kind() != reflect.Struct {
			continue
		}
		switch v := v.(type) {
		case map[string]any:
			dst = unknownKeys(dst, prefix+k+".", v, field)
		case []any:
			for _, e := range v {
				if sub, ok := e.(map[string]any); ok {
					dst = unknownKeys(dst, prefix+k+".", sub, field)
				}
			}
		}
	}
	return dst
}

// Nearest returns the name that is at most two letters from word, counting a letter left out,
// added, changed, or swapped with the next; "" if there is none.
func Nearest(word string, names []string) string {
	const most = 2
	best, least := "", most+1
	for _, name := range names {
		if len(word) > 2*len(name)+most {
			continue
		}
		if d := distance(strings.ToLower(word), name); d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance returns the number of letters by which two words differ: see Nearest.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := 1; j <= len(b); j++ {
			if i == 0 {
				rows[i][j] = j
				continue
			}
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
