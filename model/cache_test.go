package model

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// A stranger's checkpoint of a run's name that claims to have the agreed parameters, and rounded
// weights that nothing can be compared with, does not pass for what the run's members gave.
func TestAFetchedCheckpointDoesNotPassForARunsModel(t *testing.T) {
	cfg := adapterKinds()["llama"].Base()
	agreed := checkpoint.Model{
		Run: "good", Config: CheckpointConfig(cfg), Tokenizer: tokenizer.Bytes{}, Layout: cfg.Layout(), Params: llama.Init(cfg, wire.Sum("agreed")),
	}
	other := agreed
	other.Params = llama.Init(cfg, wire.Sum("other"))
	dir := t.TempDir()
	m, err := Write(t.Context(), filepath.Join(dir, "model"), other, checkpoint.Options{DType: checkpoint.BF16})
	if err != nil {
		t.Fatal(err)
	}
	m.Params = merkle.BlobRoot(tensor.Bytes(agreed.Params))
	if err := os.WriteFile(filepath.Join(dir, "model", checkpoint.ManifestFile), m.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	weights := 0
	files := http.FileServerFS(os.DirFS(dir))
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, checkpoint.WeightsFile) {
			weights++
		}
		files.ServeHTTP(w, r)
	}))
	defer host.Close()
	f := Fetcher{Cache: Cache{Dir: t.TempDir(), Most: 1 << 30}, Say: t.Logf}

	small := f
	small.BytesMax = 1 << 10
	if _, _, err := small.Local(t.Context(), host.URL+"/model", wire.Hash{}); err == nil || weights > 0 {
		t.Errorf("a checkpoint larger than is asked for: %v, weights were asked for %d times", err, weights)
	}
	if _, release, err := f.Local(t.Context(), host.URL+"/model", wire.Hash{}); err != nil {
		t.Fatal(err)
	} else {
		release()
	}
	if dir, release, ok := f.Held("good", m.Params); ok {
		release()
		t.Errorf("a stranger's checkpoint, %s, passes for the model of the run", dir)
	}
	kept, release, err := f.Keep(t.Context(), agreed)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if dir, release, ok := f.Held("good", m.Params); !ok || dir != kept {
		t.Errorf("what was kept, %s, is not found: %q", kept, dir)
	} else {
		release()
	}
	if err := f.Cache.remove(wire.Hash{}); err == nil {
		t.Error("what is not there is removed")
	}
}
