package spec

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/entrain-network/entrain/codec"
)

// A form is a specification as it appears in TOML: a struct with Spec's fields, except that
// Optimizer is a struct of the codec's name and a pointer to each codec's table.

const optimizerField = "Optimizer"

// formOf returns the struct type of forms.
func formOf(kinds []codec.Kind) reflect.Type {
	optimizer := []reflect.StructField{{Name: "Codec", Type: reflect.TypeFor[string](), Tag: `toml:"codec"`}}
	for i, k := range kinds {
		optimizer = append(optimizer, reflect.StructField{
			Name: fmt.Sprint("Table", i), Type: reflect.PointerTo(reflect.TypeOf(k.Defaults)),
			Tag: reflect.StructTag(fmt.Sprintf(`toml:"%s,omitempty"`, k.Name)),
		})
	}
	fields := reflect.VisibleFields(reflect.TypeFor[Spec]())
	for i, f := range fields {
		if f.Name == optimizerField {
			fields[i].Type = reflect.StructOf(optimizer)
		}
	}
	return reflect.StructOf(fields)
}

// newForm returns the form of s as an addressable value.
func newForm(s Spec, kinds []codec.Kind) reflect.Value {
	f, from := reflect.New(formOf(kinds)).Elem(), reflect.ValueOf(s)
	for i := range f.NumField() {
		if f.Type().Field(i).Name != optimizerField {
			f.Field(i).Set(from.Field(i))
		}
	}
	o := f.FieldByName(optimizerField)
	name := s.Optimizer.Kind().Name
	o.Field(0).SetString(name)
	for i, k := range kinds {
		if k.Name == name {
			o.Field(1 + i).Set(reflect.New(reflect.TypeOf(k.Defaults)))
			o.Field(1 + i).Elem().Set(reflect.ValueOf(s.Optimizer))
		}
	}
	return f
}

// readForm is the inverse of newForm. It rejects tables of codecs that the run does not use.
func readForm(f reflect.Value, kinds []codec.Kind) (Spec, error) {
	var s Spec
	to := reflect.ValueOf(&s).Elem()
	for i := range f.NumField() {
		if f.Type().Field(i).Name != optimizerField {
			to.Field(i).Set(f.Field(i))
		}
	}
	o := f.FieldByName(optimizerField)
	name := o.Field(0).String()
	if _, ok := codec.Find(kinds, name); !ok {
		s.Optimizer = kinds[0].Defaults // defaultFor has reported the name
		return s, nil
	}
	for i, k := range kinds {
		table := o.Field(1 + i)
		switch {
		case table.IsNil():
		case k.Name == name:
			s.Optimizer = table.Elem().Interface().(codec.Options)
		default:
			return Spec{}, fmt.Errorf("optimizer.%s: the run's codec is %q: leave the table out, or set optimizer.codec = %q",
				k.Name, name, k.Name)
		}
	}
	return s, nil
}

// goType matches the TOML reader's name for the field that a value does not fit.
var goType = regexp.MustCompile(`cannot decode TOML (\S+) into (?:a )?(?:struct field .+ of type )?(\S+)`)

// mistake describes a wrong value by its key.
func mistake(err *toml.DecodeError) string {
	text := strings.TrimPrefix(err.Error(), "toml: ")
	if m := goType.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("want %s, not a TOML %s", wanted(m[2]), m[1])
	}
	if key := strings.Join(err.Key(), "."); key != "" {
		return key + ": " + text
	}
	return text
}

// wanted returns TOML's name for a Go type.
func wanted(goType string) string {
	switch {
	case strings.Contains(goType, "int"):
		return "an integer"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case strings.HasSuffix(goType, "string"):
		return "a string"
	case strings.HasSuffix(goType, "Duration"):
		return `a duration such as "90s"`
	}
	return "a table"
}
