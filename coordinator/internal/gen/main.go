// Command gen writes what coordinator/schema.txt describes: the accessors of package record and its
// tables of offsets, the coordinator's Config, errors and messages with the table of messages in
// its package comment, and the offsets that tests use.
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
		"internal/record/doc_gen.go":    s.recordDoc(),
		"internal/record/record_gen.go": s.records(),
		"internal/record/error_gen.go":  s.errorCode(),
		"config_gen.go":                 s.configuration(),
		"messages_gen.go":               s.messageCode(),
		"errors_gen.go":                 s.errorNames(),
		"offsets_gen_test.go":           s.offsets(),
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

// The lines of doc.go between which the table of messages stands.
const (
	kindsBegin = "// # Messages\n//\n"
	kindsEnd   = "// # Example\n"
)

// manual returns the text of doc.go with the table of messages.
func (s schema) manual(text string) ([]byte, error) {
	before, rest, ok := strings.Cut(text, kindsBegin)
	_, after, found := strings.Cut(rest, kindsEnd)
	if !ok || !found {
		return nil, fmt.Errorf("doc.go lacks the headings %q and %q", kindsBegin, kindsEnd)
	}
	return format.Source([]byte(before + kindsBegin + s.kinds() + kindsEnd + after))
}
