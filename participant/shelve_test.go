package participant

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/bucket/serve"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/checkpoint/depot"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// meter is a store that counts what a member asks of it.
type meter struct {
	bucket.Store
	requests, lists int
	bytes           int64
}

func (m *meter) Get(ctx context.Context, key string, offset, n int64) ([]byte, bucket.Object, error) {
	b, whole, err := m.Store.Get(ctx, key, offset, n)
	m.requests, m.bytes = m.requests+1, m.bytes+int64(len(b))
	return b, whole, err
}

func (m *meter) Stat(ctx context.Context, key string) (bucket.Object, error) {
	m.requests++
	return m.Store.Stat(ctx, key)
}

func (m *meter) List(ctx context.Context, prefix, after string, most int) ([]bucket.Object, error) {
	m.requests, m.lists = m.requests+1, m.lists+1
	return m.Store.List(ctx, prefix, after, most)
}

// shelved is a checkpoint in the bucket of a run's owner.
type shelved struct {
	dir     string // of the checkpoint
	spec    spec.Spec
	store   bucket.Store // as the owner writes
	address string
}

func shelve(t *testing.T) shelved {
	t.Helper()
	words := tokenizer.Bytes{}
	end := words.End()
	c := llama.Config{Vocab: int(words.Vocab()), Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 24, Context: 64, Theta: 10000, Eps: 1e-5}
	config := model.CheckpointConfig(c)
	config.EOS = &end
	m := checkpoint.Model{Run: "base", Step: 7, Config: config, Tokenizer: words, Layout: c.Layout(), Params: make([]float32, c.Layout().Len())}
	for i := range m.Params {
		m.Params[i] = float32(i%97)/97 - 0.5
	}
	s := shelved{dir: filepath.Join(t.TempDir(), "base")}
	if _, err := model.Write(t.Context(), s.dir, m, checkpoint.Options{}); err != nil {
		t.Fatal(err)
	}
	server, err := serve.Start(t.Context(), serve.Config{Dir: t.TempDir(), Secret: "root-secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	own, read, err := server.Make("owner")
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ENTRAIN_BUCKET": own.URL(), "ENTRAIN_BUCKET_READ": read.URL()}
	getenv := func(name string) string { return env[name] }
	if s.address, err = Shelve(t.Context(), getenv, s.dir); err != nil {
		t.Fatal(err)
	}
	// A specification is public, so credentials that can write are not put into one.
	env["ENTRAIN_BUCKET_READ"] = own.URL()
	if _, err := Shelve(t.Context(), getenv, s.dir); err == nil || !strings.Contains(err.Error(), "can write to your bucket") {
		t.Errorf("announced credentials that write: %v", err)
	}
	client := bucket.NewClient(bucket.S3Options{})
	t.Cleanup(client.Close)
	at, err := bucket.ParseLocation(s.address)
	if err != nil {
		t.Fatal(err)
	}
	at.AccessKey, at.SecretKey = own.AccessKey, own.SecretKey
	if s.store, err = client.Open(at); err != nil {
		t.Fatal(err)
	}
	opened, err := model.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	text := "name = \"r\"\n[data]\nsequence = 32\nmanifest = \"" + strings.Repeat("1", 64) + "\"\n[model]\nfrom_location = \"" + s.address + "\"\n[model.lora]\nrank = 2\nalpha = 4.0\n"
	if s.spec, err = spec.Continue([]byte(text), spec.ModelOf(opened.Config, opened.Hash(), words.Hash()), all.Kinds()); err != nil {
		t.Fatal(err)
	}
	return s
}

// fetch fetches the model as a member does, and returns what that cost.
func (s shelved) fetch(t *testing.T) (m *meter, dir string, err error) {
	t.Helper()
	client := bucket.NewClient(bucket.S3Options{})
	defer client.Close()
	m, dir = &meter{}, filepath.Join(t.TempDir(), "origin")
	open := func(l bucket.Location) (_ bucket.Store, err error) {
		m.Store, err = client.Open(l)
		return m, err
	}
	want, _ := s.spec.From()
	return m, dir, fetchParams(t.Context(), s.spec.Model.FromLocation, dir, s.spec, want, depot.Options{S3: open, Stranger: true}, nil)
}

func (s shelved) put(t *testing.T, key string, b []byte) {
	t.Helper()
	if err := s.store.Put(t.Context(), key, bytes.NewReader(b), int64(len(b)), false); err != nil {
		t.Fatal(err)
	}
}

// Members find the frozen model in the bucket of the run's owner. Whatever else is in it, they ask for the manifest and for each of its
// files, 8 MiB at a time, and for nothing more.
func TestTheFrozenModelIsInTheOwnersBucket(t *testing.T) {
	s := shelve(t)
	manifest, err := os.ReadFile(filepath.Join(s.dir, checkpoint.ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := checkpoint.ParseManifest(manifest)
	if err != nil {
		t.Fatal(err)
	}
	most := 2 + len(parsed.Files) // a look for the manifest, the manifest, and the files, which are small
	m, dir, err := s.fetch(t)
	if err != nil || m.requests > most || m.lists > 0 {
		t.Fatalf("%d requests, want at most %d; %d lists; %v", m.requests, most, m.lists, err)
	}
	if got, err := model.Open(dir); err != nil || got.Hash() != parsed.Params {
		t.Errorf("it has %v, %v", got.Hash(), err)
	}

	for i := range 20 {
		s.put(t, depot.StepName(uint32(i))+"/"+checkpoint.ManifestFile, manifest)
	}
	if m, _, err := s.fetch(t); err != nil || m.requests > most || m.lists > 0 {
		t.Errorf("among many objects: %d requests, %v", m.requests, err)
	}
	// Files of another model under a manifest that names the right parameters.
	wrong := parsed
	wrong.Files = append([]checkpoint.File(nil), parsed.Files...)
	for i, f := range wrong.Files {
		if !strings.HasSuffix(f.File, ".safetensors") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(s.dir, f.File))
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-2] ^= 1
		wrong.Files[i].SHA256 = wire.SHA256(b)
		s.put(t, f.File, b)
	}
	s.put(t, checkpoint.ManifestFile, wrong.Bytes())
	m, dir, err = s.fetch(t)
	if err == nil || !strings.Contains(err.Error(), "the parameters have hash") || m.requests > most {
		t.Errorf("wrong contents: %d requests, %v", m.requests, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("wrong contents are kept: %v", err)
	}
	// A manifest that lists far more than the model.
	huge := wrong
	huge.Files = append(append([]checkpoint.File(nil), wrong.Files...), checkpoint.File{File: "zz.bin", Bytes: 1 << 40, SHA256: wire.SHA256(nil)})
	s.put(t, checkpoint.ManifestFile, huge.Bytes())
	if m, _, err := s.fetch(t); err == nil || m.requests > 2 || m.bytes > checkpoint.ManifestBytesMax {
		t.Errorf("a manifest of a terabyte: %d requests, %d bytes, %v", m.requests, m.bytes, err)
	}
	// No manifest at the address: nothing is searched.
	if err := s.store.Delete(t.Context(), checkpoint.ManifestFile); err != nil {
		t.Fatal(err)
	}
	if m, _, err := s.fetch(t); err == nil || m.requests != 1 {
		t.Errorf("without a manifest: %d requests, %v", m.requests, err)
	}
}

// A specification cannot make a member ask hosts that only its machine reaches.
func TestAStrangersAddressMustBePublic(t *testing.T) {
	s := shelve(t)
	for _, address := range []string{s.address, strings.Replace(s.address[:strings.LastIndex(s.address, "?")], "s3://", "http://", 1)} {
		d, err := depot.Open(address, depot.Options{Stranger: true, Public: true, Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if _, err := d.Manifest(t.Context()); err == nil || !strings.Contains(err.Error(), "not on the public internet") {
			t.Errorf("%s: %v", d, err)
		}
	}
}

// A member that is stopped while it fetches the model that the user named continues at its next start.
func TestTheModelOfARunIsFetchedOn(t *testing.T) {
	s := shelve(t)
	ctx, stop := context.WithCancel(t.Context())
	asked := make(map[string]int)
	files := http.FileServerFS(os.DirFS(s.dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		if asked[name]++; name == checkpoint.WeightsFile && asked[name] == 1 {
			stop()
			<-r.Context().Done()
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p := Options{State: t.TempDir(), From: server.URL}
	if _, err := p.fetchOrigin(ctx, s.spec, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("a fetch that is stopped: %v", err)
	}
	before := maps.Clone(asked)
	if err := removeLeftovers(p.State); err != nil {
		t.Fatal(err)
	}
	dir, err := p.fetchOrigin(t.Context(), s.spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := s.spec.From()
	if m, err := model.Open(dir); err != nil || m.Hash() != want {
		t.Errorf("another model: %v", err)
	}
	for name, n := range before {
		if name != checkpoint.ManifestFile && name != checkpoint.WeightsFile && asked[name] != n {
			t.Errorf("%s was asked for again", name)
		}
	}
	if len(before) < 4 {
		t.Errorf("only %v were asked for before", before)
	}
	if left, err := os.ReadDir(p.State); err != nil || len(left) != 1 {
		t.Errorf("beside the model stays %v: %v", left, err)
	}
}
