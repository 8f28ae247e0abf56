package data

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/data/source"
)

// written writes a file of a name and returns its path.
func written(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func docOptions() PrepareOptions {
	o := options()
	o.Format = source.Auto
	return o
}

// openAll opens a prepared set for single tokens, in the order of the text.
func allTokens(t *testing.T, dir string, m Manifest) (train, heldOut []uint32) {
	t.Helper()
	s := mustOpen(t, dir, m, Options{SequenceTokens: 1})
	return stream(t, s.train), stream(t, s.heldOut.part)
}

func TestBadSourcesAreNamedWithTheirPlace(t *testing.T) {
	good := `{"text":"x"}` + "\n"
	llmc, err := os.ReadFile("source/testdata/llmc.bin")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("source/testdata/docs.parquet")
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := os.ReadFile("source/testdata/docs.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		field string
		want  []string
	}{
		{"broken.jsonl", []byte(good + good + `{"text":` + "\n"), "", []string{"broken.jsonl", "line 3", "not a JSON object"}},
		{"array.jsonl", []byte(good + "[1]\n"), "", []string{"line 2", "not a JSON object"}},
		{"other.jsonl", []byte(good + `{"b":1,"a":2}` + "\n"), "", []string{"line 2", `no field "text"`, "a, b"}},
		{"number.jsonl", []byte(`{"text":12}`), "", []string{"line 1", "12", "not a string"}},
		{"damaged.jsonl.gz", append(slices.Clone(zipped[:2000]), zipped[2010:]...), "", []string{"damaged.jsonl.gz", "line "}},
		{"short.jsonl.gz", zipped[:3000], "", []string{"short.jsonl.gz", "unexpected EOF"}},
		{"no.jsonl.gz", []byte(good), "", []string{"no.jsonl.gz", "gzip"}},
		{"no.jsonl.zst", []byte(good), "", []string{"no.jsonl.zst", "line 1", "magic"}},
		{"no.parquet", []byte(good), "", []string{"no.parquet"}},
		{"columns.parquet", table, "body", []string{`no field "body"`, "id, tags, text"}},
		{"numbers.parquet", table, "id", []string{`"id" does not hold text`}},
		{"lists.parquet", table, "tags", []string{`"tags" holds a list`}},
		{"short.parquet", table[:len(table)-9], "", []string{"short.parquet"}},
		{"odd.bin", []byte{1, 2, 3}, "", []string{"does not imply a format"}},
		{"short.bin", llmc[:len(llmc)-2], "", []string{"short.bin", "1000 tokens of 2 bytes behind 1024"}},
		{"head.bin", llmc[:1000], "", []string{"1024 bytes"}},
		{"x.idx", []byte("x"), "", []string{"x.bin"}},
	} {
		o := docOptions()
		o.Field = c.field
		_, err := Prepare(t.Context(), t.TempDir(), []string{written(t, c.name, c.bytes)}, o)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q in it", c.name, err, want)
			}
		}
	}
}

func TestTokenizerIsLearntAndKept(t *testing.T) {
	sources := []string{"source/testdata/docs.parquet", "source/testdata/docs.jsonl.gz"}
	dir := t.TempDir()
	lo := LearnOptions{Vocab: 300, Format: source.Auto, HeldOutPermille: 100}
	learnt, err := LearnTokenizer(t.Context(), dir, sources, lo)
	if err != nil {
		t.Fatal(err)
	}
	lo.Workers = 1
	again, err := LearnTokenizer(t.Context(), t.TempDir(), sources, lo)
	if err != nil || again.Hash() != learnt.Hash() {
		t.Errorf("with one worker: another tokenizer, %v", err)
	}
	// What is in the directory is taken for the same plan, and not for another.
	if kept, err := LearnTokenizer(t.Context(), dir, sources, lo); err != nil || kept.Hash() != learnt.Hash() {
		t.Errorf("kept: %v", err)
	}
	lo.Vocab = 290
	if other, err := LearnTokenizer(t.Context(), t.TempDir(), sources, lo); err != nil || other.Vocab() != 290 {
		t.Errorf("other: %v", err)
	}
	o := docOptions()
	o.Tokenizer = learnt
	m := mustPrepare(t, dir, sources, o)
	s := mustOpen(t, dir, m, Options{SequenceTokens: 8})
	found, err := s.Tokenizer()
	if err != nil || found.Hash() != learnt.Hash() {
		t.Fatalf("the set's tokenizer: %v", err)
	}
	dst := make([]uint32, 9)
	if err := s.HeldOut().Read(0, dst); err != nil {
		t.Fatal(err)
	}
	if b, err := found.Decode(nil, dst); err != nil || !strings.Contains(string(b), "Document") {
		t.Errorf("the set begins %q, %v", b, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	damage(t, filepath.Join(dir, tokenizerFile), flip(20))
	if _, err := s.Tokenizer(); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("a changed definition: got %v", err)
	}
	lo.Format = source.Uint16
	if _, err := LearnTokenizer(t.Context(), dir, []string{written(t, "a.bin", make([]byte, 8))}, lo); err == nil || !strings.Contains(err.Error(), "is learned from text") {
		t.Errorf("tokens: got %v", err)
	}
}
