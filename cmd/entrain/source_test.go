package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/checkpoint/depot"
)

// A model at an address is written with, exported and scored as one in a directory: fetched once, verified, and no other than the one that was asked for.
func TestModelsAtAddresses(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir, _ := importForeign(t, s)
	saved, err := checkpoint.OpenLocal(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	manifest := saved.Manifest.Hash().String()
	var weights atomic.Int32
	files := http.FileServerFS(os.DirFS(dir))
	static := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".safetensors") {
			weights.Add(1)
		}
		files.ServeHTTP(w, r)
	}))
	defer static.Close()
	own, _, client := startBuckets(t)
	s.console.env = withSecrets(func(string) string { return "" }, own)
	d, err := depot.Open(own.Under("models").URL(), depot.Options{S3: client.Open})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Upload(t.Context(), dir, saved.Manifest, 0); err != nil {
		t.Fatal(err)
	}
	task := writeFile(t, filepath.Join(t.TempDir(), "piqa.jsonl"), `{"goal":"open a jar","sol1":"twist","sol2":"sing","label":0}`+"\n")
	write := []string{"--prompt", "All the", "--tokens", "12", "--seed", "1"}
	file := filepath.Join(t.TempDir(), "model.gguf")
	wanted := s.ok(append([]string{"model", "generate", dir}, write...)...)
	scored := s.ok("model", "eval", dir, "--task", "piqa="+task, "--json")
	s.ok("model", "export", dir, "-o", file)
	gguf, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{static.URL, bare(own.Under("models"))} {
		for range 2 {
			if got := s.ok(append([]string{"model", "generate", address, "--hash", manifest}, write...)...); got != wanted {
				t.Errorf("%s: wrote %q, the directory's wrote %q", address, got, wanted)
			}
		}
		if got := s.ok("model", "eval", address, "--task", "piqa="+task, "--json"); got != scored {
			t.Errorf("%s: scored %s, the directory's %s", address, got, scored)
		}
		os.Remove(file)
		s.ok("model", "export", address, "-o", file)
		if got, err := os.ReadFile(file); err != nil || string(got) != string(gguf) {
			t.Errorf("%s: another file was exported, %v", address, err)
		}
	}
	if n := weights.Load(); n != 1 {
		t.Errorf("the weights were fetched %d times", n)
	}

	other := strings.Repeat("0", 63) + "1"
	for _, from := range []string{static.URL, dir} {
		s.fails(append([]string{"model", "generate", from, "--hash", other}, write...), manifest, other)
	}
	s.fails([]string{"model", "generate", dir, "--hash", "x"}, "--hash")

	// What was damaged in the cache is not used.
	cached := filepath.Join(s.console.places.Cache, "checkpoints", manifest)
	if err := os.Remove(filepath.Join(cached, checkpoint.WeightsFile)); err != nil {
		t.Fatal(err)
	}
	s.fails(append([]string{"model", "generate", static.URL}, write...), checkpoint.WeightsFile)
}
