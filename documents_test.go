package entrain_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentsNameTestsThatExist compares the tests that documents name, whole or by a prefix as for
// -run, with those that there are.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	var documents []string
	made, named := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`), regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`)
	var tests []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			documents = append(documents, path)
		case strings.HasSuffix(path, "_test.go"):
			b, err := os.ReadFile(path)
			for _, m := range made.FindAllSubmatch(b, -1) {
				tests = append(tests, string(m[1]))
			}
			return err
		}
		return nil
	})
	if err != nil || len(tests) == 0 || len(documents) == 0 {
		t.Fatalf("%d tests and %d documents, %v", len(tests), len(documents), err)
	}
	for _, document := range documents {
		b, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range named.FindAllString(string(b), -1) {
			if !slices.ContainsFunc(tests, func(s string) bool { return strings.HasPrefix(s, name) }) {
				t.Errorf("%s names %s, which does not exist", document, name)
			}
		}
	}
}
