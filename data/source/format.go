package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Format is what a source file contains.
type Format uint8

// The formats of source files.
const (
	Text     Format = iota // text, which the tokenizer cuts; each file is one document
	Uint16                 // little-endian tokens of 2 bytes, taken as they are
	Uint32                 // little-endian tokens of 4 bytes, taken as they are
	JSONL                  // lines, or one list, of JSON objects; compressed if named .gz or .zst
	Parquet                // a table with a document or conversation per row
	LLMC                   // llm.c's shards: a header of 1 KiB, then tokens of 2 or 4 bytes
	Megatron               // Megatron-LM's pair of files .bin and .idx; either may be named
	Arrow                  // a table as Hugging Face's datasets library saves it
	Auto                   // detect from each file; see DetectFormat
)

// formatNames are the names of the formats, in their order.
var formatNames = []string{"text", "uint16", "uint32", "jsonl", "parquet", "llm.c", "megatron", "arrow", "auto"}

// String is the format's name.
func (f Format) String() string {
	if int(f) < len(formatNames) {
		return formatNames[f]
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// MarshalText returns the format's name.
func (f Format) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// FormatNames returns the names of all formats.
func FormatNames() []string { return slices.Clone(formatNames) }

// ParseFormat returns the format of a name.
func ParseFormat(name string) (Format, error) {
	i := slices.Index(formatNames, name)
	if i < 0 {
		return 0, fmt.Errorf("unknown format %q: choose from %s", name, strings.Join(formatNames, ", "))
	}
	return Format(i), nil
}

// hasTokens reports whether the files hold tokens, not text.
func (f Format) hasTokens() bool { return f == Uint16 || f == Uint32 || f == LLMC || f == Megatron }

// hasRows reports whether the files are tables.
func (f Format) hasRows() bool { return f == JSONL || f == Parquet || f == Arrow }

// jsonlEndings and textEndings are the file name endings that identify a format. aboutTables are
// files of Hugging Face's that hold no rows.
var (
	jsonlEndings = []string{".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst", ".json", ".json.gz", ".json.zst"}
	textEndings  = []string{".txt", ".text", ".md"}
	aboutTables  = []string{"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}
)

// DetectFormat returns the format of a file by the end of its name, and for .bin by its first bytes
// or the file beside it. A file with another name that looks like text is text. Bare tokens have no
// mark, so the user must state their size.
func DetectFormat(path string) (Format, error) {
	name := strings.ToLower(filepath.Base(path))
	ends := func(ending string) bool { return strings.HasSuffix(name, ending) }
	switch {
	case ends(".parquet"):
		return Parquet, nil
	case ends(".arrow"):
		return Arrow, nil
	case hasRows(name):
		return JSONL, nil
	case slices.ContainsFunc(textEndings, ends):
		return Text, nil
	case ends(".idx"):
		return Megatron, nil
	case ends(".bin"):
		if _, err := os.Stat(strings.TrimSuffix(path, filepath.Ext(path)) + ".idx"); err == nil {
			return Megatron, nil
		}
		isLLMC, err := hasLLMCHeader(path)
		if err != nil || isLLMC {
			return LLMC, err
		}
	default:
		looks, err := looksLikeText(path)
		if err != nil || looks {
			return Text, err
		}
	}
	return 0, fmt.Errorf("the name of %q does not imply a format: choose one with --format (%s)", path, strings.Join(formatNames[:Auto], ", "))
}

// hasLLMCHeader reports whether a file begins with a header of llm.c.
func hasLLMCHeader(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var b [8]byte
	if _, err := io.ReadFull(f, b[:]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	_, ok := llmcTokenBytes(binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:]))
	return ok, nil
}

// hasRows reports whether a file name is that of a table or of JSON, but not of what datasets
// writes about its tables, nor of its cache of what was made of them.
func hasRows(name string) bool {
	name = strings.ToLower(name)
	if slices.Contains(aboutTables, name) || strings.HasPrefix(name, "cache-") {
		return false
	}
	return strings.HasSuffix(name, ".parquet") || strings.HasSuffix(name, ".arrow") || slices.ContainsFunc(jsonlEndings, func(ending string) bool { return strings.HasSuffix(name, ending) })
}

// looksLikeText reports whether a file begins with UTF-8 of visible characters.
func looksLikeText(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	b := make([]byte, 4<<10)
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	b = b[:n]
	if n == cap(b) {
		b = b[:pieceEnd(b)]
	}
	return utf8.Valid(b) && !bytes.ContainsRune(b, 0), nil
}

// splitWords are the words in file names that identify the split of a data set, as in Hugging
// Face's datasets library.
var splitWords = map[string][]string{
	"train":      {"train", "training"},
	"validation": {"validation", "valid", "dev", "val"},
	"test":       {"test", "testing", "eval", "evaluation"},
}

// Expand replaces each directory among paths by the tables in it, at any depth, sorted: .parquet,
// .arrow, .jsonl and .json, compressed or not. If names identify splits, as in Hugging Face's
// repositories (data/train-00000-of-00002.parquet, sample/test/1.jsonl), Expand takes only the
// files of the requested split. Files among paths stay as they are.
func Expand(paths []string, split string) ([]string, error) {
	if _, ok := splitWords[split]; !ok {
		return nil, fmt.Errorf("unknown split %q: choose train, validation or test", split)
	}
	var out []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			out = append(out, path)
			continue
		}
		found, err := tables(path)
		if err != nil {
			return nil, err
		}
		found = ofSplit(path, found, split)
		if len(found) == 0 {
			return nil, fmt.Errorf("directory %q has no .parquet, .arrow, .jsonl or .json files of the split %q", path, split)
		}
		out = append(out, found...)
	}
	return out, nil
}

// tables returns the files below dir that hold documents in rows or lines.
func tables(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Name(), ".") && path != dir {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.IsDir() && hasRows(d.Name()) {
			found = append(found, path)
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}

// Tables returns those of the names of a data set's files that Expand would take of a directory
// with all of them.
func Tables(names []string, split string) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !hasRows(name) })
	return ofSplit("", names, split)
}

// ofSplit returns the files of a split, or all files if no name identifies a split.
func ofSplit(dir string, paths []string, split string) []string {
	var of []string
	named := false
	for _, path := range paths {
		relative := strings.ToLower(strings.TrimPrefix(path, dir))
		words := strings.FieldsFunc(relative, func(r rune) bool { return !unicode.IsLetter(r) })
		for name, synonyms := range splitWords {
			if !slices.ContainsFunc(words, func(w string) bool { return slices.Contains(synonyms, w) }) {
				continue
			}
			named = true
			if name == split {
				of = append(of, path)
			}
		}
	}
	if !named {
		return paths
	}
	return of
}
