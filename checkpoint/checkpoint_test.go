package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// memory is a directory in memory that Write writes into and Open reads from.
type memory fstest.MapFS

func (m memory) create(name string) (io.WriteCloser, error) {
	if m[name] != nil {
		return nil, fs.ErrExist
	}
	m[name] = &fstest.MapFile{}
	return memoryFile{m[name]}, nil
}

func (m memory) fs() fs.FS { return fstest.MapFS(m) }

type memoryFile struct{ f *fstest.MapFile }

func (f memoryFile) Write(p []byte) (int, error) {
	f.f.Data = append(f.f.Data, p...)
	return len(p), nil
}

func (memoryFile) Close() error { return nil }

// example is a model of three tensors.
func example() Model {
	end := tokenizer.Bytes{}.End()
	layout := tensor.NewLayout([]tensor.Spec{
		{Name: "model.embed_tokens.weight", Shape: []int{256, 16}}, {Name: "model.norm.weight", Shape: []int{16}}, {Name: "lm_head.weight", Shape: []int{256, 16}},
	})
	return Model{
		Run: "opticks", Epoch: 2, Round: 40, Step: 37,
		Config:    Config{Vocab: 256, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 32, Context: 128, Theta: 10000, Eps: 1e-5, EOS: &end},
		Tokenizer: tokenizer.Bytes{}, Layout: layout, Params: random(layout.Len()),
		Card: Card{Datasets: []string{"Newton: \"Opticks\""}, Facts: []Fact{{"held-out loss", "1.9 | nats"}}},
	}
}

func mustWrite(t *testing.T, m Model, o Options) (memory, Manifest) {
	t.Helper()
	dir := memory{}
	manifest, err := Write(dir.create, m, o)
	if err != nil {
		t.Fatal(err)
	}
	return dir, manifest
}

func TestCheckpointIsReadBack(t *testing.T) {
	m := example()
	for _, c := range []struct {
		options Options
		weights []string
	}{
		{Options{}, []string{"model.safetensors"}},
		{Options{DType: BF16}, []string{"model.safetensors"}},
		{Options{ShardBytesMax: 16500}, []string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}},
		{Options{ShardBytesMax: 1}, []string{"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors"}},
	} {
		dir, manifest := mustWrite(t, m, c.options)
		var weights []string
		for _, f := range manifest.Files {
			if strings.HasSuffix(f.File, ".safetensors") {
				weights = append(weights, f.File)
			}
		}
		if !slices.Equal(weights, c.weights) {
			t.Errorf("%+v: got weights in %v, want %v", c.options, weights, c.weights)
		}
		if manifest.Params != merkle.BlobRoot(tensor.Bytes(m.Params)) {
			t.Errorf("%+v: the manifest has another parameter hash", c.options)
		}
		want := m.Params
		if c.options.DType == BF16 {
			want = make([]float32, len(m.Params))
			BF16.decode(want, appendBF16(nil, m.Params))
		}
		opened, err := Open(dir.fs(), manifest.Hash())
		if err != nil {
			t.Fatal(err)
		}
		imported, err := Import(dir.fs())
		if err != nil {
			t.Fatal(err)
		}
		for how, s := range map[string]*Saved{"opened": opened, "imported": imported} {
			got := make([]float32, m.Layout.Len())
			if err := s.Params(m.Layout, got); err != nil || !equalBits(got, want) {
				t.Errorf("%+v, %s: parameters differ, %v", c.options, how, err)
			}
			if fmt.Sprint(s.Config.EOS != nil, *s.Config.EOS) != "true 0" {
				t.Errorf("%s: end token is %v", how, s.Config.EOS)
			}
			s.Config.EOS = m.Config.EOS
			if s.Config != m.Config {
				t.Errorf("%s: got %+v, want %+v", how, s.Config, m.Config)
			}
		}
		if b, err := opened.File(TokenizerFile, 1<<20); err != nil || wire.SHA256(b) != m.Tokenizer.Hash() {
			t.Errorf("tokenizer.json: %v", err)
		}
	}
}

func TestIndexNamesTheFileOfEveryTensor(t *testing.T) {
	dir, _ := mustWrite(t, example(), Options{ShardBytesMax: 16500})
	var got index
	if err := json.Unmarshal(dir[IndexFile].Data, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"model.embed_tokens.weight": "model-00001-of-00002.safetensors",
		"model.norm.weight":         "model-00001-of-00002.safetensors",
		"lm_head.weight":            "model-00002-of-00002.safetensors",
	}
	if !maps.Equal(got.Where, want) || got.Metadata.TotalSize != 4*(2*256*16+16) {
		t.Errorf("got %+v", got)
	}
}

func TestTheSameModelGivesTheSameFiles(t *testing.T) {
	a, first := mustWrite(t, example(), Options{})
	b, second := mustWrite(t, example(), Options{})
	if first.Hash() != second.Hash() || len(a) != len(b) {
		t.Error("manifests differ")
	}
	other := example()
	other.Params[5] = -other.Params[5]
	if _, third := mustWrite(t, other, Options{}); third.Hash() == first.Hash() {
		t.Error("another model has the same manifest")
	}
}

func TestDamagedFilesAreNamed(t *testing.T) {
	m := example()
	flat := make([]float32, m.Layout.Len())
	for _, o := range []Options{{}, {ShardBytesMax: 16500}} {
		_, manifest := mustWrite(t, m, o)
		for _, f := range manifest.Files {
			for _, c := range []struct {
				name   string
				damage func([]byte) []byte
			}{
				{"bit flipped at the end", func(b []byte) []byte { b[len(b)-3] ^= 1; return b }},
				{"bit flipped at the front", func(b []byte) []byte { b[9] ^= 4; return b }},
				{"shortened", func(b []byte) []byte { return b[:len(b)-1] }},
				{"lengthened", func(b []byte) []byte { return append(b, 0) }},
				{"emptied", func(b []byte) []byte { return nil }},
			} {
				dir, _ := mustWrite(t, m, o)
				dir[f.File].Data = c.damage(dir[f.File].Data)
				s, err := Open(dir.fs(), manifest.Hash())
				if err == nil && strings.HasSuffix(f.File, weightsSuffix) {
					err = s.Params(m.Layout, flat)
				} else if err == nil {
					_, err = s.File(f.File, 1<<20)
				}
				var corrupt *CorruptError
				if !errors.As(err, &corrupt) || corrupt.File != f.File {
					t.Errorf("%s %s: got %v", f.File, c.name, err)
				}
			}
			dir, _ := mustWrite(t, m, o)
			delete(dir, f.File)
			s, err := Open(dir.fs(), manifest.Hash())
			if err == nil && strings.HasSuffix(f.File, weightsSuffix) {
				err = s.Params(m.Layout, flat)
			} else if err == nil {
				_, err = s.File(f.File, 1<<20)
			}
			if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), f.File) {
				t.Errorf("%s missing: got %v", f.File, err)
			}
		}
	}
}

func TestOpenRefusesAnotherManifest(t *testing.T) {
	dir, manifest := mustWrite(t, example(), Options{})
	if _, err := Open(dir.fs(), wire.Hash{1}); err == nil || !strings.Contains(err.Error(), manifest.Hash().String()) {
		t.Errorf("got %v", err)
	}
	if _, err := OpenLocal(dir.fs()); err != nil {
		t.Errorf("got %v", err)
	}
	dir[ManifestFile].Data[3] = 'x'
	if _, err := OpenLocal(dir.fs()); err == nil {
		t.Error("a damaged manifest was opened")
	}
}

func TestWeightsMustBeTheModels(t *testing.T) {
	m := example()
	specs := func(edit func([]tensor.Spec) []tensor.Spec) tensor.Layout {
		return tensor.NewLayout(edit([]tensor.Spec{
			{Name: "model.embed_tokens.weight", Shape: []int{256, 16}}, {Name: "model.norm.weight", Shape: []int{16}}, {Name: "lm_head.weight", Shape: []int{256, 16}},
		}))
	}
	dir, manifest := mustWrite(t, m, Options{ShardBytesMax: 1})
	for name, c := range map[string]struct {
		layout tensor.Layout
		want   string
	}{
		"one more":    {specs(func(s []tensor.Spec) []tensor.Spec { return append(s, tensor.Spec{Name: "x", Shape: []int{1}}) }), `no file has tensor "x"`},
		"one less":    {specs(func(s []tensor.Spec) []tensor.Spec { return s[:2] }), "set tie_word_embeddings"},
		"other shape": {specs(func(s []tensor.Spec) []tensor.Spec { s[1].Shape = []int{4, 4}; return s }), "[4 4]"},
	} {
		s, err := Open(dir.fs(), manifest.Hash())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Params(c.layout, make([]float32, c.layout.Len())); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// The same tensor in two files of an import.
	dir["model-00002-of-00003.safetensors"].Data = dir["model-00001-of-00003.safetensors"].Data
	s, err := Import(dir.fs())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Params(m.Layout, make([]float32, m.Layout.Len())); err == nil || !strings.Contains(err.Error(), "two files") {
		t.Errorf("got %v", err)
	}
}

func TestIndexesThatAreRefused(t *testing.T) {
	dir, _ := mustWrite(t, example(), Options{})
	for _, text := range []string{"", "{}", `{"weight_map":{"a":"../model.safetensors"}}`, `{"weight_map":{"a":"README.md"}}`, `{"weight_map":{"a":"none.safetensors"}}`} {
		dir[IndexFile] = &fstest.MapFile{Data: []byte(text)}
		if _, err := Import(dir.fs()); err == nil {
			t.Errorf("index %q was accepted", text)
		}
	}
}

func TestModelsThatAreNotWritten(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Model, *Options)
		want string
	}{
		"diverged":             {func(m *Model, o *Options) { m.Params[256*16+3] = float32(math.NaN()) }, `element 3 of tensor "model.norm.weight" is NaN`},
		"infinite":             {func(m *Model, o *Options) { m.Params[0] = float32(math.Inf(-1)) }, "-Inf"},
		"wrong length":         {func(m *Model, o *Options) { m.Params = m.Params[1:] }, "for a layout"},
		"small vocabulary":     {func(m *Model, o *Options) { m.Config.Vocab = 255 }, "256 tokens"},
		"bad configuration":    {func(m *Model, o *Options) { m.Config.Layers = 0 }, "num_hidden_layers"},
		"name with a new line": {func(m *Model, o *Options) { m.Run = "a\nb" }, "printable"},
		"half precision":       {func(m *Model, o *Options) { o.DType = F16 }, "cannot write F16"},
	} {
		m, o := example(), Options{}
		c.edit(&m, &o)
		dir := memory{}
		if _, err := Write(dir.create, m, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
		if dir[ManifestFile] != nil {
			t.Errorf("%s: a manifest was written", name)
		}
	}
}

var errDisk = errors.New("disk is full")

// full is a file that fails, in writing or in closing.
type full struct{ closing bool }

func (f full) Write(p []byte) (int, error) {
	if f.closing {
		return len(p), nil
	}
	return 0, errDisk
}

func (f full) Close() error { return errDisk }

func TestFullDiskIsReported(t *testing.T) {
	_, manifest := mustWrite(t, example(), Options{})
	for _, name := range append(manifest.Files, File{File: ManifestFile}) {
		for _, closing := range []bool{false, true} {
			dir := memory{}
			_, err := Write(func(file string) (io.WriteCloser, error) {
				if file == name.File {
					return full{closing}, nil
				}
				return dir.create(file)
			}, example(), Options{})
			if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), name.File) {
				t.Errorf("%s: got %v", name.File, err)
			}
		}
	}
}

func TestCardIsOneTableAndAYAMLHeader(t *testing.T) {
	dir, manifest := mustWrite(t, example(), Options{})
	card := string(dir[CardFile].Data)
	for _, want := range []string{
		"---\nlibrary_name: \"transformers\"\n", "datasets:\n- \"Newton: \\\"Opticks\\\"\"\n", "\n# opticks\n",
		"| held-out loss | 1.9 \\| nats |\n", "| parameter hash | " + manifest.Params.String() + " |\n", "| epoch, round, step | 2, 40, 37 |\n",
	} {
		if !strings.Contains(card, want) {
			t.Errorf("%q is not in\n%s", want, card)
		}
	}
}

func TestCardSaysWhatTheRunDid(t *testing.T) {
	for fact, c := range map[string]struct{ with, without string }{
		"":           {"The parameter hash is the one agreed in the run. ", "Written by"},
		MergedWith:   {"The run agreed on the hash of the adapters. ", "is the one agreed"},
		ImportedFrom: {"which did not train it", "agreed"},
	} {
		m := example()
		if fact != "" {
			m.Card.Facts = append(m.Card.Facts, Fact{fact, "it"})
		}
		dir, manifest := mustWrite(t, m, Options{})
		if card := string(dir[CardFile].Data); !strings.Contains(card, c.with) || strings.Contains(card, c.without) {
			t.Errorf("%q: want %q and not %q in\n%s", fact, c.with, c.without, card)
		}
		saved, err := Open(dir.fs(), manifest.Hash())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := saved.Card(); err != nil || !reflect.DeepEqual(got, m.Card) {
			t.Errorf("%q: read is %+v, %v, want %+v", fact, got, err, m.Card)
		}
	}
}

func TestCheckpointOnDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoint")
	m := example()
	var manifest Manifest
	err := atomicfile.WriteDir(t.Context(), dir, func(create atomicfile.Create) (err error) {
		manifest, err = Write(create, m, Options{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(os.DirFS(dir), manifest.Hash())
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, m.Layout.Len())
	if err := s.Params(m.Layout, got); err != nil || !equalBits(got, m.Params) {
		t.Errorf("parameters differ, %v", err)
	}

	if err := exec.Command("python3", "-c", "import importlib.util; assert importlib.util.find_spec('transformers')").Run(); err != nil {
		t.Skip("python3 with the transformers package is not installed: pip install transformers")
	}
	const text = "Ā <light> é"
	var log bytes.Buffer
	load := exec.Command("python3", "testdata/load.py", dir, text)
	load.Stderr = &log
	out, err := load.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, log.Bytes())
	}
	want := `{"class": "LlamaConfig", "vocab": 256, "head_dim": 8, "kv_heads": 1, "theta": 10000.0, "eps": 1e-05, "tied": false, "bos": null, "eos": 0, "sample": true, "length": 128, ` +
		`"ids": [196, 128, 32, 60, 108, 105, 103, 104, 116, 62, 32, 195, 169], "text": "\u0100 <light> \u00e9"}`
	if string(out) != want {
		t.Errorf("transformers reads\n%s\nwant\n%s", out, want)
	}
}
