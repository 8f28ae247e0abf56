package checkpoint

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

func exampleManifest() Manifest {
	return Manifest{
		Version: 1, Run: "Newton's run", Epoch: 1, Round: 12, Step: 9, Params: wire.Hash{1}, DType: "F32", Tokenizer: "bytes",
		Files: []File{{"README.md", 10, wire.Hash{2}}, {"config.json", 20, wire.Hash{3}}},
	}
}

func TestManifestsThatAreRefused(t *testing.T) {
	if m, err := ParseManifest(exampleManifest().Bytes()); err != nil || m.Hash() != exampleManifest().Hash() {
		t.Fatalf("a good manifest is read as %+v, %v", m, err)
	}
	edit := func(f func(m *Manifest)) []byte {
		m := exampleManifest()
		f(&m)
		return m.Bytes()
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"other version", edit(func(m *Manifest) { m.Version = 0 }), "version 0"},
		{"no run", edit(func(m *Manifest) { m.Run = "" }), "run"},
		{"run that moves the cursor", edit(func(m *Manifest) { m.Run = "\x1b[A" }), "printable"},
		{"no tokenizer", edit(func(m *Manifest) { m.Tokenizer = "" }), "tokenizer"},
		{"other dtype", edit(func(m *Manifest) { m.DType = "I8" }), "I8"},
		{"path", edit(func(m *Manifest) { m.Files[1].File = "../config.json" }), "plain"},
		{"hidden file", edit(func(m *Manifest) { m.Files[1].File = ".git" }), "plain"},
		{"manifest in itself", edit(func(m *Manifest) { m.Files[1].File = ManifestFile }), "plain"},
		{"repeated file", edit(func(m *Manifest) { m.Files[1].File = "README.md" }), "repeated"},
		{"files in disorder", edit(func(m *Manifest) { m.Files[0].File = "x" }), "not in order"},
		{"impossible size", edit(func(m *Manifest) { m.Files[0].Bytes = 1 << 63 }), "bytes"},
		{"too many files", edit(func(m *Manifest) { m.Files = make([]File, filesMax+1) }), "4097"},
		{"not JSON", []byte("]"), "JSON"},
		{"unknown field", bytes.Replace(exampleManifest().Bytes(), []byte(`"epoch"`), []byte(`"Era": 1, "epoch"`), 1), "Era"},
		{"other spacing", bytes.TrimSpace(exampleManifest().Bytes()), "canonical"},
		{"too large", make([]byte, ManifestBytesMax+1), "more than"},
	} {
		if _, err := ParseManifest(c.bytes); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add(exampleManifest().Bytes())
	f.Add(Manifest{}.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := ParseManifest(b); err == nil && !bytes.Equal(m.Bytes(), b) {
			t.Errorf("%q parses but is written as %q", b, m.Bytes())
		}
	})
}

// A manifest is the word of the member that wrote it. With float32 the weights are compared with
// the parameters it names, and those with what the run agreed on; rounded weights are not accepted
// in place of them.
func TestOtherWeightsDoNotPassForTheAgreedParameters(t *testing.T) {
	m := example()
	want := merkle.BlobRoot(tensor.Bytes(m.Params))
	bad := m
	bad.Params = make([]float32, m.Layout.Len())
	for _, dtype := range []DType{F32, BF16} {
		dir, manifest := mustWrite(t, bad, Options{DType: dtype})
		if err := manifest.Is(want); err == nil {
			t.Errorf("%v: an honest manifest of other parameters is accepted", dtype)
		}
		manifest.Params = want
		dir[ManifestFile].Data = manifest.Bytes()
		saved, err := Open(dir.fs(), manifest.Hash())
		if err != nil {
			t.Fatal(err)
		}
		refused := saved.Manifest.Is(want)
		if refused == nil {
			refused = saved.Params(m.Layout, make([]float32, m.Layout.Len()))
		}
		if refused == nil {
			t.Errorf("%v: other weights are read as the agreed parameters", dtype)
		}
	}
	dir, manifest := mustWrite(t, m, Options{DType: F32})
	saved, err := Open(dir.fs(), manifest.Hash())
	if err == nil {
		err = errors.Join(manifest.Is(want), manifest.Is(manifest.Hash()), saved.Params(m.Layout, make([]float32, m.Layout.Len())))
	}
	if err != nil {
		t.Error(err)
	}
}
