// Command corpus writes text of several kinds to standard output, as JSONL, for measurements of
// learning (docs/learning.md):
//
//	go run ./tools/corpus >corpus.jsonl
//
// It takes what Go and the modules of modules.txt ship: three books, documentation, and sources in
// Go and other languages. The modules are those that this program had when the text was first made,
// whatever it needs since. Documents are in the order of their hashes, so any part of the file is
// a sample of the whole, and equal versions of Go give the same bytes. The command prints the hash
// of what it wrote to standard error.
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	goBytes       = 40 << 20 // of Go's sources that are taken; of everything else, all
	documentBytes = 16 << 10 // longer files are cut after the first line that ends beyond
	fileBytes     = 256 << 10
)

// kinds are what files of these endings are counted as.
var kinds = map[string]string{
	".go": "Go", ".md": "documentation", ".rst": "documentation", ".html": "documentation", ".c": "C", ".h": "C", ".cc": "C", ".cpp": "C",
	".s": "assembly", ".S": "assembly", ".rs": "other languages", ".py": "other languages", ".java": "other languages", ".js": "other languages",
	".ts": "other languages", ".sh": "other languages", ".pl": "other languages", ".swift": "other languages", ".kt": "other languages",
	".cs": "other languages", ".dart": "other languages", ".php": "other languages", ".proto": "other languages", ".tla": "other languages",
}

func main() {
	if err := run(os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

// collection is the documents found so far, by their hashes.
type collection map[[sha256.Size]byte]document

type document struct{ kind, text string }

func run(out, report io.Writer) error {
	docs := collection{}
	list, err := output("go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return err
	}
	root, version, _ := strings.Cut(list, "\n")
	dirs, err := modules()
	if err != nil {
		return err
	}
	if err := docs.books(root, dirs[booksModule]); err != nil {
		return err
	}
	for _, dir := range append(slices.Sorted(maps.Values(dirs)), root) {
		if err := docs.tree(dir); err != nil {
			return err
		}
	}
	return docs.write(out, report, version)
}

//go:embed modules.txt
var versions string

// booksModule ships two of the books.
const booksModule = "github.com/pierrec/lz4/v4"

// modules returns the directories of the modules by their paths. It downloads what is missing.
func modules() (dirs map[string]string, err error) {
	list, err := output("go", append([]string{"mod", "download", "-json"}, strings.Fields(versions)...)...)
	if err != nil {
		return nil, err
	}
	dirs = map[string]string{}
	for d := json.NewDecoder(strings.NewReader(list)); d.More(); {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		dirs[m.Path] = m.Dir
	}
	return dirs, nil
}

// output returns what a command prints. It runs outside of this program's module, whose versions
// are others.
func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = os.TempDir(), os.Stderr
	b, err := cmd.Output()
	return strings.TrimSpace(string(b)), err
}

// books adds Opticks, Tom Sawyer and Sherlock Holmes.
func (d collection) books(root, module string) error {
	b, err := os.ReadFile(filepath.Join(root, "src/testdata/Isaac.Newton-Opticks.txt"))
	if err != nil {
		return err
	}
	d.add("books", string(b))
	for _, name := range []string{"Mark.Twain-Tom.Sawyer.txt.gz", "pg1661.txt.gz"} {
		b, err := os.ReadFile(filepath.Join(module, "testdata", name))
		if err != nil {
			return err
		}
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err == nil {
			b, err = io.ReadAll(z)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		d.add("books", string(b))
	}
	return nil
}

// tree adds the files of a directory that people wrote.
func (d collection) tree(root string) error {
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := e.Name(); e.IsDir() {
			if name == "testdata" || name == "vendor" || name == "pkg" && filepath.Dir(path) == root {
				return filepath.SkipDir
			}
			return nil
		}
		kind, ok := kinds[filepath.Ext(path)]
		if !ok || !e.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if text := string(b); len(b) <= fileBytes && written(text) {
			d.add(kind, text)
		}
		return nil
	})
}

// written reports whether a text seems to be written by people: programs leave a note that they
// wrote it, or long lines.
func written(text string) bool {
	lines := strings.Count(text, "\n") + 1
	return utf8.ValidString(text) && !strings.Contains(text[:min(len(text), 2048)], "DO NOT EDIT") && len(text) < 120*lines
}

// add adds a text as documents that end with lines.
func (d collection) add(kind, text string) {
	for text != "" {
		n := len(text)
		if n > documentBytes {
			if end := strings.IndexByte(text[documentBytes:], '\n'); end >= 0 {
				n = documentBytes + end + 1
			}
		}
		d[sha256.Sum256([]byte(text[:n]))], text = document{kind, text[:n]}, text[n:]
	}
}

// write writes the documents, and reports how many bytes there are of each kind, and of which Go.
func (d collection) write(out, report io.Writer, version string) error {
	sum, taken, total := sha256.New(), map[string]int{}, 0
	lines := json.NewEncoder(io.MultiWriter(out, sum))
	lines.SetEscapeHTML(false)
	ids := slices.SortedFunc(maps.Keys(d), func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	// The sources in Go that are taken are spread over the file.
	all := 0
	for _, id := range ids {
		if d[id].kind == "Go" {
			all += len(d[id].text)
		}
	}
	seen := 0
	for _, id := range ids {
		doc := d[id]
		if doc.kind == "Go" {
			if seen += len(doc.text); int64(taken["Go"])*int64(max(all, goBytes)) > int64(seen)*goBytes {
				continue
			}
		}
		taken[doc.kind], total = taken[doc.kind]+len(doc.text), total+len(doc.text)
		if err := lines.Encode(struct {
			Text string `json:"text"`
		}{doc.text}); err != nil {
			return err
		}
	}
	for _, kind := range slices.SortedFunc(maps.Keys(taken), func(a, b string) int { return cmp.Compare(taken[b], taken[a]) }) {
		fmt.Fprintf(report, "%12d bytes  %s\n", taken[kind], kind)
	}
	_, err := fmt.Fprintf(report, "%12d bytes, %s, SHA-256 %x\n", total, version, sum.Sum(nil))
	return err
}
