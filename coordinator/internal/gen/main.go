// Command gen writes what coordinator/schema.txt describes: the accessors of package record, the
// coordinator's Config, the offsets that tests use, and the offset tables in the coordinator's
// package comment.
//
// Run it in the coordinator's directory, by "go generate".
package main

import (
	"fmt"
	"go/format"
	"os"
	"strings"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run writes the files of the coordinator's directory dir.
func run(dir string) error {
	files, err := generate(dir)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(dir+"/"+name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the files as they should be, by their names in the coordinator's directory.
func generate(dir string) (map[string][]byte, error) {
	text, err := os.ReadFile(dir + "/schema.txt")
	if err != nil {
		return nil, err
	}
	s, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("schema.txt: %w", err)
	}
	manual, err := os.ReadFile(dir + "/doc.go")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, code := range map[string]string{
		"internal/record/record_gen.go":  s.records(),
		"internal/record/refusal_gen.go": s.codes(),
		"config_gen.go":                  s.configuration(),
		"messages_gen.go":                s.messageCode(),
		"errors_gen.go":                  s.errorCode(),
		"offsets_gen_test.go":            s.offsets(),
	} {
		if files[name], err = format.Source([]byte(code)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if files["doc.go"], err = s.manual(string(manual)); err != nil {
		return nil, err
	}
	return files, nil
}

// The lines of doc.go between which the tables of offsets and of messages stand.
const (
	tablesBegin = "// # Offsets\n//\n"
	tablesEnd   = "// # Messages\n//\n"
	kindsEnd    = "// # Example\n"
)

// manual returns the text of doc.go with the offset tables of the schema.
func (s schema) manual(text string) ([]byte, error) {
	before, rest, ok := strings.Cut(text, tablesBegin)
	_, after, found := strings.Cut(rest, tablesEnd)
	if !ok || !found {
		return nil, fmt.Errorf("doc.go lacks the headings %q and %q", tablesBegin, tablesEnd)
	}
	_, after, ok = strings.Cut(after, kindsEnd)
	if !ok {
		return nil, fmt.Errorf("doc.go lacks the heading %q", kindsEnd)
	}
	return format.Source([]byte(before + tablesBegin + s.tables() + tablesEnd + s.kinds() + kindsEnd + after))
}
