package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/tokenizer"
)

// foreign is a model of a shape that no preset has, with a byte-level BPE of its own.
var foreign = llama.Config{Vocab: 272, Hidden: 32, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 8, FFN: 48, Context: 64, Theta: 50000, Eps: 1e-6, Tied: true}

// foreignWords joins " t", "he" and " the".
func foreignWords(t *testing.T) *tokenizer.BPE {
	t.Helper()
	b := tokenizer.ByteToken
	words, err := tokenizer.New([]tokenizer.Merge{{Left: b(' '), Right: b('t'), Token: 257}, {Left: b('h'), Right: b('e'), Token: 258}, {Left: 257, Right: 258, Token: 259}})
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// writeForeign writes a directory as other software does, in shards of BF16 without a manifest of ours, and returns what float32 makes of it.
func writeForeign(t *testing.T) (dir string, params []float32) {
	t.Helper()
	params = llama.Init(foreign, [32]byte{7})
	for i, v := range params { // cut to BF16, so that what is written is exactly this
		params[i] = cut(v)
	}
	m := checkpoint.Model{Run: "foreign", Config: model.CheckpointConfig(foreign), Tokenizer: foreignWords(t), Layout: foreign.Layout(), Params: params}
	dir = filepath.Join(t.TempDir(), "Foreign_Llama")
	err := atomicfile.WriteDir(t.Context(), dir, func(create atomicfile.Create) error {
		_, err := checkpoint.Write(create, m, checkpoint.Options{DType: checkpoint.BF16, ShardBytesMax: 16 << 10})
		return err
	})
	if err == nil {
		err = os.Remove(filepath.Join(dir, checkpoint.ManifestFile))
	}
	if err != nil {
		t.Fatal(err)
	}
	if shards, _ := filepath.Glob(filepath.Join(dir, "model-*.safetensors")); len(shards) < 2 {
		t.Fatalf("it is in %d shards", len(shards))
	}
	return dir, params
}

// cut drops the lower half of a float32.
func cut(v float32) float32 {
	b := tensor.Bytes([]float32{v})
	b = bytes.Clone(b)
	b[0], b[1] = 0, 0
	out := make([]float32, 1)
	tensor.SetBytes(out, b)
	return out[0]
}

// importForeign makes a checkpoint of a model from elsewhere.
func importForeign(t *testing.T, s *shell) (dir string, params []float32) {
	t.Helper()
	from, params := writeForeign(t)
	dir = filepath.Join(t.TempDir(), "imported")
	out := s.ok("model", "import", from, "-o", dir)
	if want := merkle.BlobRoot(tensor.Bytes(params)).String(); strings.TrimSpace(out) != want {
		t.Fatalf("import printed %q, the parameters have %s", out, want)
	}
	return dir, params
}

func TestImportLosesNothing(t *testing.T) {
	s := newShell(t)
	dir, params := importForeign(t, s)
	m, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Config != foreign || !bytes.Equal(tensor.Bytes(m.Params), tensor.Bytes(params)) {
		t.Errorf("the checkpoint has another model: %+v", m.Config)
	}
	words, err := m.Tokenizer()
	if err != nil || words.Hash() != foreignWords(t).Hash() {
		t.Errorf("the checkpoint has another tokenizer: %v", err)
	}
	if eos := m.Saved.Config.EOS; eos == nil || *eos != words.End() {
		t.Errorf("texts end with %v", eos)
	}
	if m.Saved.Manifest.Run != "foreign_llama" || m.Saved.Manifest.DType != "F32" {
		t.Errorf("the manifest is %+v", m.Saved.Manifest)
	}
	var printed struct {
		Params    string
		Manifest  string
		Tokenizer string
	}
	from, _ := writeForeign(t)
	out := s.ok("model", "import", from, "-o", filepath.Join(t.TempDir(), "again"), "--name", "foreign_llama", "--json")
	if err := json.Unmarshal([]byte(out), &printed); err != nil || printed.Params != m.Saved.Manifest.Params.String() ||
		printed.Manifest != m.Saved.Manifest.Hash().String() || printed.Tokenizer != words.Hash().String() {
		t.Errorf("the same again: %s, %v", out, err)
	}
}

func TestImportSaysWhatItCannotDo(t *testing.T) {
	s := newShell(t)
	from, _ := writeForeign(t)
	out := filepath.Join(t.TempDir(), "out")
	edit := func(file, old, new string) (restore func()) {
		path := filepath.Join(from, file)
		b, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(b), old) {
			t.Fatalf("%s has no %q: %v", file, old, err)
		}
		writeFile(t, path, strings.Replace(string(b), old, new, 1))
		return func() { writeFile(t, path, string(b)) }
	}
	s.fails([]string{"model", "import"}, "say one directory")
	s.fails([]string{"model", "import", from}, "-o DIR")
	s.fails([]string{"model", "import", t.TempDir(), "-o", out}, "config.json", "safetensors")
	for _, c := range []struct{ file, old, new, want string }{
		{"config.json", `"rope_scaling": null`, `"rope_scaling": {"rope_type": "yarn", "factor": 8.0}`, "yarn"},
		{"config.json", `"model_type": "llama"`, `"model_type": "mixtral"`, "mixtral"},
		{"config.json", `"attention_bias": false`, `"attention_bias": true, "sliding_window": 12`, "sliding windows"},
		{"config.json", `"num_hidden_layers": 2`, `"num_hidden_layers": 3`, "model.layers.2"},
		{"config.json", `"num_hidden_layers": 2`, `"num_hidden_layers": 100000`, "does not train"},
		{"tokenizer.json", `"type": "BPE"`, `"type": "Unigram"`, "Unigram"},
		{"tokenizer.json", `"special": true`, `"special": false`, "ends a document"},
		{"model.safetensors.index.json", "model-00001", "model-00009", "model-00009"},
	} {
		restore := edit(c.file, c.old, c.new)
		s.fails([]string{"model", "import", from, "-o", out}, "Foreign_Llama", c.want)
		restore()
	}
	shards, _ := filepath.Glob(filepath.Join(from, "model-*.safetensors"))
	b, err := os.ReadFile(shards[0])
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, shards[0], string(b[:len(b)-2])+"\xc0\x7f") // a NaN in BF16
	s.fails([]string{"model", "import", from, "-o", out}, "NaN", "damaged")
	writeFile(t, shards[0], string(b))
	if _, err := os.Stat(out); err == nil {
		t.Error("something was left of an import that failed")
	}
	s.ok("model", "import", from, "-o", out)
	s.fails([]string{"model", "import", from, "-o", out}, "file already exists", "choose another place")
	s.fails([]string{"model", "import", out, "-o", out + "2"}, "needs no import")
	if err := os.Remove(filepath.Join(from, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	s.fails([]string{"model", "import", from, "-o", out + "2"}, "tokenizer.json", "AutoTokenizer")
}

// A model is imported from a hub by its name, as from a directory; what the hub lacks is named.
func TestAModelIsImportedFromAHub(t *testing.T) {
	s := newShell(t)
	from, _ := writeForeign(t)
	files := http.StripPrefix("/owner/Foreign_Llama/resolve/main/", http.FileServer(http.Dir(from)))
	var asked []string
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Authorization"))
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(hub.Close)
	out := t.TempDir()
	want := s.ok("model", "import", from, "-o", filepath.Join(out, "local"))
	s.env["HF_ENDPOINT"], s.env["HF_TOKEN"] = hub.URL, "secret"
	if got := s.ok("model", "import", "hf://owner/Foreign_Llama", "-o", filepath.Join(out, "fetched")); got != want {
		t.Errorf("the hash is %s, from the directory %s", got, want)
	}
	if len(asked) < 4 || asked[0] != "Bearer secret" {
		t.Errorf("the hub was asked %d times, with %q", len(asked), asked)
	}
	left, err := filepath.Glob(filepath.Join(s.console.places.Cache, "checkpoints", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("what was fetched stays: %v, %v", left, err)
	}
	s.fails([]string{"model", "import", "hf://owner/other", "-o", filepath.Join(out, "x")}, "hf://", "config.json", "404")
	s.fails([]string{"model", "import", "owner/other", "-o", filepath.Join(out, "x")}, "hf://owner/other")
	s.env["HF_ENDPOINT"] = "nonsense"
	s.fails([]string{"model", "import", "hf://owner/other", "-o", filepath.Join(out, "x")}, "HF_ENDPOINT")
	s.env["HF_ENDPOINT"] = hub.URL
	if err := os.WriteFile(filepath.Join(from, "model.safetensors.index.json"), []byte(`{"weight_map":{"a":"../../secret.safetensors"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.fails([]string{"model", "import", "hf://owner/Foreign_Llama", "-o", filepath.Join(out, "x")}, "not the name of a safetensors file")
}

// Commands that read a checkpoint cut text as its tokenizer.json says; special tokens are not to be had by spelling them, unless asked for.
func TestTheTokenizerIsTheCheckpoints(t *testing.T) {
	s := newShell(t)
	dir, _ := importForeign(t, s)
	var g model.Generator
	if err := g.Open(dir); err != nil {
		t.Fatal(err)
	}
	if ids := g.Encode(" the the<|endoftext|>"); len(ids) != 2+len("<|endoftext|>") || ids[0] != 259 || ids[1] != 259 {
		t.Errorf("the prompt is %v", ids)
	}
	g.Special = true
	if ids := g.Encode(" the the<|endoftext|>"); len(ids) != 3 || ids[2] != g.Tokenizer.End() {
		t.Errorf("with special tokens the prompt is %v", ids)
	}
	for _, args := range [][]string{{"--seed", "a"}, {"--seed", "a", "--special"}} {
		out := s.ok(append([]string{"model", "generate", dir, "--prompt", " the<|endoftext|> the", "--tokens", "5"}, args...)...)
		if !strings.HasPrefix(out, " the<|endoftext|> the") {
			t.Errorf("printed %q", out)
		}
	}
	file := filepath.Join(t.TempDir(), "model.gguf")
	s.ok("model", "export", dir, "-o", file, "--type", "f32")
	b, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(b, []byte("\x05\x00\x00\x00\x00\x00\x00\x00\xc4\xa0the")) {
		t.Errorf("the file does not spell \" the\": %v", err)
	}
	small := filepath.Join(t.TempDir(), "bf16")
	s.ok("model", "export", dir, "-o", small, "--type", "hf-bf16")
	if m, err := model.Open(small); err != nil || m.Saved.Manifest.DType != "BF16" {
		t.Errorf("in BF16 it is %+v, %v", m.Saved, err)
	}
	task := "piqa=" + filepath.Join("..", "..", "eval", "testdata", "piqa.jsonl")
	if out := s.ok("model", "eval", dir, "--task", task, "--items", "1"); !strings.Contains(out, "piqa") {
		t.Errorf("printed %q", out)
	}
}
