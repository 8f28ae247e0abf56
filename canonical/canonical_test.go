package canonical

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

type sample struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

func (s sample) Bytes() []byte { return JSON(s) }

func (s sample) Check() error {
	if s.Count < 0 {
		return errors.New("count is negative")
	}
	return nil
}

func TestOnlyOneSpellingIsRead(t *testing.T) {
	want := sample{"a <b> & c", 3}
	text := string(want.Bytes())
	if text != "{\n  \"name\": \"a <b> & c\",\n  \"count\": 3\n}\n" {
		t.Fatalf("written as %q", text)
	}
	if got, err := Parse[sample]([]byte(text), "sample", 100); err != nil || got != want {
		t.Errorf("read as %+v, %v", got, err)
	}
	for name, bad := range map[string]string{
		"spacing":          strings.ReplaceAll(text, "  ", " "),
		"a repeated field": strings.Replace(text, "{", "{\n  \"count\": 3,", 1),
		"an unknown field": strings.Replace(text, "{", "{\n  \"more\": 3,", 1),
		"an escape":        strings.Replace(text, "<", `\u003c`, 1),
		"what follows":     text + "\n",
		"no end":           text[:len(text)-1],
		"nothing":          "",
		"its check":        strings.Replace(text, "3", "-3", 1),
		"its length":       string(sample{strings.Repeat("a", 100), 1}.Bytes()),
	} {
		if got, err := Parse[sample]([]byte(bad), "sample", 100); err == nil || !strings.HasPrefix(err.Error(), "sample") || got != (sample{}) {
			t.Errorf("%s: read as %+v, %v", name, got, err)
		}
	}
	if _, err := Parse[sample]([]byte(text+"\n"), "sample", 100); !errors.Is(err, ErrEdited) {
		t.Errorf("another spelling: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample{"x", 1}.Bytes())
	f.Add([]byte(`{"name":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Parse[sample](b, "sample", 1<<10)
		if err == nil && !bytes.Equal(v.Bytes(), b) {
			t.Errorf("%q is read as what is written as %q", b, v.Bytes())
		}
	})
}
