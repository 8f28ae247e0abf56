package source

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
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

// documents are those of testdata/sources.py that are not empty.
func documents() (texts [][]byte) {
	for i := range 500 {
		if i != 7 && i != 8 {
			texts = append(texts, fmt.Appendf(nil, "Document %d says é %s", i, strings.Repeat("la ", i*37%211)))
		}
	}
	return texts
}

// encoded returns the tokens of a file, in the tokenizer of bytes.
func encoded(t *testing.T, path string, permille uint32) (all Encoded) {
	t.Helper()
	list, err := Open([]string{path}, Auto, "", permille)
	if err != nil {
		t.Fatal(err)
	}
	err = list[0].Read(t.Context(), Position{}, func(p *Piece) error { return all.add(list[0].Encode(p, tokenizer.Bytes{}, nil)) })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (all *Encoded) add(e Encoded) error {
	all.Train, all.HeldOut = append(all.Train, e.Train...), append(all.HeldOut, e.HeldOut...)
	return e.Err
}

// ids returns the tokens of documents.
func ids(documents [][]byte) (tokens []uint32) {
	for _, d := range documents {
		tokens = append(tokenizer.Bytes{}.Encode(tokens, d), tokenizer.Bytes{}.End())
	}
	return tokens
}

func TestDocumentsOfOtherProgramsAreRead(t *testing.T) {
	var train, heldOut [][]byte
	for _, d := range documents() {
		if HeldOut(d, 100) {
			heldOut = append(heldOut, d)
		} else {
			train = append(train, d)
		}
	}
	if len(heldOut) < 25 || len(heldOut) > 75 {
		t.Fatalf("%d of 498 documents are held out, want about 50", len(heldOut))
	}
	raw := gunzip(t, "testdata/docs.jsonl.gz")
	compressor, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"testdata/docs.parquet",
		"testdata/docs.jsonl.gz",
		written(t, "docs.jsonl", raw),
		written(t, "docs.ndjson", bytes.TrimSuffix(raw, []byte("\n"))),
		written(t, "blank lines.jsonl", bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n\n"))),
		written(t, "docs.jsonl.zst", compressor.EncodeAll(raw, nil)),
	} {
		got := encoded(t, path, 100)
		if !slices.Equal(got.Train, ids(train)) || !slices.Equal(got.HeldOut, ids(heldOut)) {
			t.Errorf("%q: %d and %d tokens differ from those of the documents", path, len(got.Train), len(got.HeldOut))
		}
		info, err := Inspect(t.Context(), path, Auto, "")
		if err != nil || info.Documents != 498 || string(info.Begin) != string(documents()[0]) {
			t.Errorf("%q: got %+v, %v", path, info, err)
		}
	}
}

func gunzip(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTokenFilesOfOtherProgramsAreRead(t *testing.T) {
	var want []uint32
	for i := range uint32(1000) {
		want = append(want, 7*i%251)
	}
	for _, path := range []string{"testdata/llmc.bin", "testdata/megatron.bin", "testdata/megatron.idx"} {
		got := encoded(t, path, 50)
		if !slices.Equal(got.Train, want[:950]) || !slices.Equal(got.HeldOut, want[950:]) {
			t.Errorf("%q: got %d and %d tokens, not the file's", path, len(got.Train), len(got.HeldOut))
		}
		info, err := Inspect(t.Context(), path, Auto, "")
		if err != nil || info.Tokens != 1000 || info.Format == Megatron && info.Documents != 3 {
			t.Errorf("%q: got %+v, %v", path, info, err)
		}
	}
}

// Readers begin again wherever one of their pieces ends, and give the same as if they had not stopped.
func TestReadersGoOnFromWherePiecesEnd(t *testing.T) {
	large := make([][]byte, 3)
	r := prng.New(wire.Hash{}, "text")
	for i := range large {
		large[i] = make([]byte, 1_500_000)
		for j := range large[i] {
			large[i][j] = "\nabcdefghijklmnopqrstuvwxyz     "[r.Uint64n(32)]
		}
	}
	var lines, table bytes.Buffer
	w := parquet.NewGenericWriter[struct {
		Text string `parquet:"text"`
	}](&table)
	for i := range 9000 {
		doc := string(large[i%3][i*100 : i*100+300])
		line, err := json.Marshal(map[string]string{"text": doc})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
		if _, err := w.Write([]struct {
			Text string `parquet:"text"`
		}{{doc}}); err != nil {
			t.Fatal(err)
		}
		if i%2500 == 2499 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(lines.Bytes())
	z.Close()
	for _, c := range []struct {
		path   string
		format Format
	}{
		{written(t, "x.txt", large[0]), Text},
		{written(t, "x.bin", large[1]), Uint16},
		{written(t, "x.jsonl", lines.Bytes()), JSONL},
		{written(t, "x.jsonl.gz", zipped.Bytes()), JSONL},
		{written(t, "x.parquet", table.Bytes()), Parquet},
		{written(t, "x.json", append(append([]byte("[ "), bytes.ReplaceAll(bytes.TrimSpace(lines.Bytes()), []byte("\n"), []byte(" ,\n"))...), ']')), JSONL},
	} {
		list, err := Open([]string{c.path}, c.format, "", 300)
		if err != nil {
			t.Fatal(err)
		}
		s := &list[0]
		var whole, parts Encoded
		var ends []Position
		add := func(to *Encoded, p *Piece) error { return to.add(s.Encode(p, tokenizer.Bytes{}, nil)) }
		if err := s.Read(t.Context(), Position{}, func(p *Piece) error { ends = append(ends, p.End); return add(&whole, p) }); err != nil {
			t.Fatal(err)
		}
		enough := errors.New("enough")
		at := Position{}
		for range ends {
			err := s.Read(t.Context(), at, func(p *Piece) error { at = p.End; return errors.Join(add(&parts, p), enough) })
			if !errors.Is(err, enough) {
				t.Fatal(err)
			}
		}
		if len(ends) < 3 || !slices.Equal(whole.Train, parts.Train) || !slices.Equal(whole.HeldOut, parts.HeldOut) {
			t.Errorf("%s: reading starts again after each of %d pieces, and %d tokens become %d", c.path, len(ends), len(whole.Train), len(parts.Train))
		}
		if last := ends[len(ends)-1].Read; last != s.Size {
			t.Errorf("%s: %d of %d bytes count as read", c.path, last, s.Size)
		}
	}
}

func TestBadIndexesAreRefused(t *testing.T) {
	tokens, err := os.ReadFile("testdata/megatron.bin")
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile("testdata/megatron.idx")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		want   string
	}{
		{"magic", func(b []byte) []byte { b[0] = 'X'; return b }, "MMIDIDX"},
		{"empty", func(b []byte) []byte { return nil }, "MMIDIDX"},
		{"version", func(b []byte) []byte { b[9] = 2; return b }, "version 2"},
		{"type", func(b []byte) []byte { b[17] = 6; return b }, "type 6"},
		{"sequences", func(b []byte) []byte { b[18]++; return b }, "does not match"},
		{"many sequences", func(b []byte) []byte { b[25] = 0x20; return b }, "does not match"},
		{"no documents", func(b []byte) []byte { b[26] = 0; return b }, "does not match"},
		{"length", func(b []byte) []byte { b[34]++; return b }, "want 1604"},
		{"negative length", func(b []byte) []byte { b[37] = 0x80; return b }, "sequence 0 of -"},
		{"document", func(b []byte) []byte { b[len(b)-8]++; return b }, "document 3"},
		{"documents in disorder", func(b []byte) []byte { b[len(b)-24] = 4; return b }, "after 4"},
		{"last length", func(b []byte) []byte { b[34+12]++; return b }, "1001 tokens"},
	} {
		path := written(t, "m.bin", tokens)
		if err := os.WriteFile(megatronName(path, ".idx"), c.change(slices.Clone(index)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := newSource(path, Megatron); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q in it", c.name, err, c.want)
		}
	}
}

func FuzzIndex(f *testing.F) {
	index, err := os.ReadFile("testdata/megatron.idx")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(index)
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := readMegatron(written(t, "m.idx", b))
		if err == nil && (l.size != 2 && l.size != 4 || l.documents > uint64(len(b)) || l.tokens > uint64(len(b))<<31) {
			t.Errorf("got %+v", l)
		}
	})
}

// A file of tokens has as many as its bytes hold, whatever its header says.
func FuzzTokenLayout(f *testing.F) {
	header := make([]byte, 1024+4)
	for i, v := range []uint32{20240520, 1, 2} {
		binary.LittleEndian.PutUint32(header[4*i:], v)
	}
	for _, format := range []Format{Uint16, Uint32, LLMC} {
		f.Add(byte(format), header)
	}
	f.Fuzz(func(t *testing.T, format byte, b []byte) {
		l, err := readTokenLayout(written(t, "tokens.bin", b), Format(format), uint64(len(b)))
		if err == nil && l.size > 0 && l.header+l.tokens*uint64(l.size) != uint64(len(b)) {
			t.Errorf("%v: %d bytes are %+v", Format(format), len(b), l)
		}
	})
}

func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"text":"a\ud800\u0000","text":null}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		text, err := documentOf(line, "text")
		if err == nil && len(text) > 0 && !bytes.Contains(line, []byte(`"`)) {
			t.Errorf("%q has the text %q", line, text)
		}
	})
}

// Files that are damaged in any way end with an error or with text, not with a panic of the library that reads them.
func FuzzParquet(f *testing.F) {
	table, err := os.ReadFile("testdata/docs.parquet")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(100), byte(1), false)
	f.Add(uint32(len(table)-300), byte(0xff), true)
	f.Fuzz(func(t *testing.T, at uint32, flip byte, cut bool) {
		b := slices.Clone(table)
		b[at%uint32(len(b))] ^= flip
		if cut {
			b = b[at%uint32(len(b)):]
		}
		list, err := Open([]string{written(t, "x.parquet", b)}, Parquet, "", 0)
		if err != nil {
			return
		}
		list[0].Read(t.Context(), Position{}, func(*Piece) error { return nil })
	})
}

func TestDirectoriesStandForTheTablesInThem(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"a/README.md", "a/data/train-00001-of-00002.parquet", "a/data/train-00000-of-00002.parquet", "a/data/test-00000-of-00001.parquet", "a/.cache/train.parquet",
		"b/part.jsonl.zst", "b/x/part.parquet", "b/.hidden.jsonl", "c/validation.jsonl", "c/trained.jsonl", "d/readme.txt",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		paths []string
		split string
		want  string
	}{
		{[]string{"a"}, "train", "a/data/train-00000-of-00002.parquet a/data/train-00001-of-00002.parquet"},
		{[]string{"a"}, "test", "a/data/test-00000-of-00001.parquet"},
		{[]string{"d/readme.txt", "b"}, "train", "d/readme.txt b/part.jsonl.zst b/x/part.parquet"},
		{[]string{"c"}, "validation", "c/validation.jsonl"},
		{[]string{"c"}, "train", `no .parquet, .arrow, .jsonl or .json files of the split "train"`},
		{[]string{"d"}, "train", "no .parquet, .arrow, .jsonl or .json"},
		{[]string{"nowhere"}, "train", "nowhere"},
		{[]string{"a"}, "half", `"half"`},
	} {
		var paths []string
		for _, p := range c.paths {
			paths = append(paths, filepath.Join(dir, p))
		}
		got, err := Expand(paths, c.split)
		text := strings.ReplaceAll(strings.Join(got, " "), dir+"/", "")
		if err != nil {
			text = err.Error()
		}
		if err == nil && text != c.want || err != nil && !strings.Contains(text, c.want) {
			t.Errorf("%v, %s: got %q, want %q", c.paths, c.split, text, c.want)
		}
	}
}

func TestFormatsAreToldByNamesAndContents(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes string
		want  Format
	}{
		{"a.TXT", "", Text}, {"a.jsonl.GZ", "", JSONL}, {"a.parquet", "", Parquet}, {"noname", "some text é", Text}, {"cut", strings.Repeat("é", 3000), Text}, {"empty", "", Text},
	} {
		if got, err := DetectFormat(written(t, c.name, []byte(c.bytes))); err != nil || got != c.want {
			t.Errorf("%q: got %v, %v, want %v", c.name, got, err, c.want)
		}
	}
	for _, b := range []string{"a\x00b", "\xff\xfe"} {
		if got, err := DetectFormat(written(t, "noname", []byte(b))); err == nil {
			t.Errorf("%q is taken for %v", b, got)
		}
	}
	for i, name := range FormatNames() {
		if got, err := ParseFormat(name); err != nil || got != Format(i) || got.String() != name {
			t.Errorf("%q: got %v, %v", name, got, err)
		}
	}
	llama := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 20240801), 7)
	llama = append(binary.LittleEndian.AppendUint32(llama, 1), make([]byte, 1012+4)...)
	if l, err := readLLMC(written(t, "x.bin", llama)); err != nil || l.size != 4 || l.tokens != 1 {
		t.Errorf("got %+v, %v", l, err)
	}
}

// FuzzArrow reads tables that strangers wrote: rows are JSON objects, and damage is an error.
func FuzzArrow(f *testing.F) {
	for _, name := range []string{"file.arrow", "stream.arrow", "saved/train/data-00000-of-00002.arrow", "saved/test/data-00000-of-00002.arrow"} {
		b, err := os.ReadFile("testdata/chat/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint16(0), byte(0))
		f.Add(b, uint16(700), byte(255))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16, change byte) {
		if int(at) < len(b) {
			b = slices.Clone(b)
			b[at] ^= change
		}
		path := written(t, "x.arrow", b)
		s := File{Path: path, format: Arrow, Size: uint64(len(b)), content: content{chat: true}}
		r, err := s.open(Position{})
		if err != nil {
			return
		}
		defer r.Close()
		for range 1000 {
			row, err := r.(rowReader).nextRow()
			if err != nil {
				return
			}
			if !json.Valid(row) {
				t.Fatalf("a row is %q", row)
			}
		}
	})
}

// FuzzConversation reads rows that strangers wrote.
func FuzzConversation(f *testing.F) {
	for _, name := range []string{"messages.jsonl", "shared.jsonl", "split.jsonl", "pairs.jsonl", "answers.jsonl", "prompts.jsonl"} {
		b, err := os.ReadFile("testdata/chat/" + name)
		if err != nil {
			f.Fatal(err)
		}
		line, rest, _ := strings.Cut(string(b), "\n")
		next, _, _ := strings.Cut(rest, "\n")
		f.Add(line, next)
	}
	f.Fuzz(func(t *testing.T, first, line string) {
		row, err := objectOf([]byte(first))
		if err != nil {
			return
		}
		c, err := contentOf(row, "")
		if err != nil || !c.chat {
			return
		}
		if of, ok, err := c.conversation([]byte(line)); err == nil && ok && !json.Valid(of.Messages) {
			t.Errorf("%q gives %q", line, of.Messages)
		}
	})
}
