package depot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/bucket/mem"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/tensor"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var zeroTime time.Time

// write writes a checkpoint of a small model to a directory.
func write(t *testing.T, step uint32, value float32, o checkpoint.Options) (dir string, m checkpoint.Manifest) {
	t.Helper()
	return writeOf(t, "demo", step, step, value, o)
}

// writeOf writes a checkpoint of a run and a round.
func writeOf(t *testing.T, run string, round, step uint32, value float32, o checkpoint.Options) (dir string, m checkpoint.Manifest) {
	t.Helper()
	layout := tensor.NewLayout([]tensor.Spec{
		{Name: "model.embed_tokens.weight", Shape: []int{256, 16}}, {Name: "model.norm.weight", Shape: []int{16}}, {Name: "lm_head.weight", Shape: []int{256, 16}},
	})
	end := tokenizer.Bytes{}.End()
	model := checkpoint.Model{
		Run: run, Round: round, Step: step, Tokenizer: tokenizer.Bytes{}, Layout: layout, Params: make([]float32, layout.Len()),
		Config: checkpoint.Config{Vocab: 256, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 32, Context: 128, Theta: 10000, Eps: 1e-5, EOS: &end},
		Card:   checkpoint.Card{Datasets: []string{"text"}},
	}
	for i := range model.Params {
		model.Params[i] = value + float32(i)
	}
	dir = filepath.Join(t.TempDir(), "checkpoint")
	err := atomicfile.WriteDir(t.Context(), dir, func(create atomicfile.Create) (err error) {
		m, err = checkpoint.Write(create, model, o)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir, m
}

func mustOpen(t *testing.T, address string, o Options) *Depot {
	t.Helper()
	o.Backoff, o.Attempts = time.Millisecond, 4
	if o.Client == nil {
		o.Client = &http.Client{Transport: &http.Transport{}}
	}
	d, err := Open(address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func anything(checkpoint.Manifest) error { return nil }

// expectFetch fetches a checkpoint and compares it with the one that was uploaded.
func expectFetch(t *testing.T, d *Depot, want checkpoint.Manifest) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fetched")
	m, err := d.Fetch(t.Context(), dir, anything)
	if err != nil || m.Hash() != want.Hash() {
		t.Errorf("fetched from %s: step %d, %v, want step %d", d, m.Step, err, want.Step)
		return
	}
	if _, err := checkpoint.Open(os.DirFS(dir), want.Hash()); err != nil {
		t.Error(err)
	}
	for _, f := range want.Files {
		if b, err := os.ReadFile(filepath.Join(dir, f.File)); err != nil || wire.SHA256(b) != f.SHA256 {
			t.Errorf("%s is not the file that was uploaded: %v", f.File, err)
		}
	}
}

// expectNothing tells that a fetch fails and leaves nothing.
func expectNothing(t *testing.T, d *Depot, check func(checkpoint.Manifest) error) error {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fetched")
	_, err := d.Fetch(t.Context(), dir, check)
	if err == nil {
		t.Errorf("a fetch from %s succeeds", d)
		return nil
	}
	if strings.Contains(err.Error(), "TOPSECRET") {
		t.Errorf("the error shows a secret: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it leaves something: %v", err)
	}
	return err
}

// each runs a test on every kind of depot that can be written.
func each(t *testing.T, test func(t *testing.T, d *Depot, steps func() []string)) {
	t.Run("bucket", func(t *testing.T) {
		w := mem.New(time.Now, 1)
		at := bucket.Location{Endpoint: "host", Bucket: "models", Prefix: "demo", AccessKey: "key", SecretKey: "TOPSECRET"}
		w.Make(at)
		test(t, mustOpen(t, at.URL(), Options{S3: w.Open}), func() (steps []string) {
			for _, k := range w.Keys(at) {
				if dir, ok := strings.CutSuffix(strings.TrimPrefix(k, "demo/"), "/"+checkpoint.ManifestFile); ok {
					steps = append(steps, dir)
				}
			}
			return steps
		})
	})
	for _, chunk := range []int{0, 1000} {
		t.Run(fmt.Sprintf("hub with pieces of %d", chunk), func(t *testing.T) {
			h := newFakeHub(t)
			h.chunk = chunk
			test(t, mustOpen(t, h.address(), Options{Getenv: env("HF_TOKEN", h.token, "HF_ENDPOINT", h.URL)}), func() (steps []string) {
				for tag := range h.tags {
					steps = append(steps, tag)
				}
				slices.Sort(steps)
				return steps
			})
		})
	}
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		if i := slices.Index(pairs, name); i >= 0 {
			return pairs[i+1]
		}
		return ""
	}
}

func TestCheckpointsAreKeptAndFetched(t *testing.T) {
	each(t, func(t *testing.T, d *Depot, steps func() []string) {
		var last checkpoint.Manifest
		for i := range uint32(4) {
			// The number of files changes from one to the next.
			dir, m := write(t, 100*(i+1), float32(i), checkpoint.Options{ShardBytesMax: []uint64{0, 16500, 1, 0}[i]})
			for range 2 {
				if err := d.Upload(t.Context(), dir, m, 2); err != nil {
					t.Fatal(err)
				}
			}
			expectFetch(t, d, m)
			last = m
		}
		if got, want := steps(), []string{"step-000300", "step-000400"}; !slices.Equal(got, want) {
			t.Errorf("kept are %v, want %v", got, want)
		}
		dir, other := write(t, 400, 99, checkpoint.Options{}) // history was rolled back
		if err := d.Upload(t.Context(), dir, other, 2); err != nil {
			t.Fatal(err)
		}
		if other.Hash() == last.Hash() {
			t.Fatal("the checkpoints are the same")
		}
		expectFetch(t, d, other)
		refused := errors.New("not the one")
		if err := expectNothing(t, d, func(checkpoint.Manifest) error { return refused }); !errors.Is(err, refused) {
			t.Errorf("the error is %v", err)
		}
	})
}

// A run does not replace or remove what another has uploaded, nor a member that is behind what one
// ahead has. The checkpoints of a history that was rolled back do not have the new ones removed.
func TestADepotIsOneRuns(t *testing.T) {
	each(t, func(t *testing.T, d *Depot, steps func() []string) {
		dir, m := write(t, 300, 1, checkpoint.Options{})
		if err := d.Upload(t.Context(), dir, m, 1); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			run         string
			round, step uint32
			want        string
		}{
			{"other", 900, 900, `has checkpoints of run "demo"`},
			{"other", 300, 300, `has checkpoints of run "demo"`},
			{"demo", 200, 200, "has a later one, of step 300"},
		} {
			behind, b := writeOf(t, c.run, c.round, c.step, 2, checkpoint.Options{})
			if err := d.Upload(t.Context(), behind, b, 1); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run %s, round %d: got %v, want %q", c.run, c.round, err, c.want)
			}
		}
		expectFetch(t, d, m)
		dir, m = writeOf(t, "demo", 310, 200, 3, checkpoint.Options{}) // the run went back to before
		if err := d.Upload(t.Context(), dir, m, 1); err != nil {
			t.Fatal(err)
		}
		if got, want := steps(), []string{"step-000200", "step-000300"}; !slices.Equal(got, want) {
			t.Errorf("kept are %v, want %v", got, want)
		}
	})
}

// What breaks off in the middle of an upload is no checkpoint, and the next attempt makes it one.
func TestBrokenUploadIsNoCheckpoint(t *testing.T) {
	w := mem.New(time.Now, 1)
	at := bucket.Location{Endpoint: "host", Bucket: "models", AccessKey: "key", SecretKey: "TOPSECRET"}
	w.Make(at)
	d := mustOpen(t, at.URL(), Options{S3: w.Open})
	dir, m := write(t, 100, 1, checkpoint.Options{})
	if err := d.Upload(t.Context(), dir, m, 1); err != nil {
		t.Fatal(err)
	}
	next, m2 := write(t, 200, 2, checkpoint.Options{})
	if err := os.Remove(filepath.Join(next, checkpoint.WeightsFile)); err != nil {
		t.Fatal(err)
	}
	if err := d.Upload(t.Context(), next, m2, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("upload of a checkpoint without weights: %v", err)
	}
	expectFetch(t, d, m)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Upload(ctx, dir, m2, 1); err == nil {
		t.Error("an upload that was cancelled succeeds")
	}
	next, _ = write(t, 200, 2, checkpoint.Options{})
	if err := d.Upload(t.Context(), next, m2, 1); err != nil {
		t.Fatal(err)
	}
	expectFetch(t, d, m2)
	for _, k := range w.Keys(at) {
		if strings.HasPrefix(k, "step-000100") {
			t.Errorf("%s is left", k)
		}
	}
}

func TestHubThatFailsIsAskedAgain(t *testing.T) {
	h := newFakeHub(t)
	d := mustOpen(t, h.address(), Options{Getenv: env("HF_TOKEN", h.token, "HF_ENDPOINT", h.URL)})
	dir, m := write(t, 100, 1, checkpoint.Options{})
	h.fail = 2
	if err := d.Upload(t.Context(), dir, m, 1); err != nil {
		t.Fatal(err)
	}
	h.fail = 3
	expectFetch(t, d, m)
	if h.commits != 1 {
		t.Errorf("%d commits were made", h.commits)
	}
	anonymous := mustOpen(t, h.address(), Options{})
	expectFetch(t, anonymous, m)
	dir, m = write(t, 200, 2, checkpoint.Options{})
	if err := anonymous.Upload(t.Context(), dir, m, 1); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("an upload without a token: %v", err)
	}
	expectFetch(t, mustOpen(t, h.address()+"&revision=step-000100", Options{}), mustManifest(t, h, "step-000100"))
}

func mustManifest(t *testing.T, h *fakeHub, tag string) checkpoint.Manifest {
	t.Helper()
	_, files := h.at(tag)
	m, err := checkpoint.ParseManifest(files[checkpoint.ManifestFile])
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Any static host that has the directory will do, with ranges and without.
func TestStaticHostIsFetchedFrom(t *testing.T) {
	dir, m := write(t, 100, 1, checkpoint.Options{})
	static := http.FileServerFS(os.DirFS(dir))
	for name, handler := range map[string]http.Handler{
		"ranges": static,
		"no ranges": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			static.ServeHTTP(w, r)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(handler)
			defer s.Close()
			d := mustOpen(t, s.URL, Options{})
			expectFetch(t, d, m)
			if err := d.Upload(t.Context(), dir, m, 1); !errors.Is(err, errReadOnly) {
				t.Errorf("upload to a static host: %v", err)
			}
			expectNothing(t, mustOpen(t, s.URL, Options{BytesMax: 1000}), anything)
		})
	}
}

// TestASilentHostOfAStrangerIsNotWaitedFor fetches from hosts that accept requests and never answer, one
// of them after it has sent the manifest.
func TestASilentHostOfAStrangerIsNotWaitedFor(t *testing.T) {
	dir, _ := write(t, 100, 1, checkpoint.Options{})
	static := http.FileServerFS(os.DirFS(dir))
	for answers := range int32(2) {
		var asked atomic.Int32
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) <= answers {
				static.ServeHTTP(w, r)
				return
			}
			<-r.Context().Done()
		}))
		defer s.Close()
		d := mustOpen(t, s.URL, Options{Stranger: true, patience: 200 * time.Millisecond})
		_, err := d.Fetch(t.Context(), filepath.Join(t.TempDir(), "x"), anything)
		if !errors.Is(err, context.DeadlineExceeded) || asked.Load() != answers+1 {
			t.Errorf("after %d answers it was asked %d times: %v", answers, asked.Load(), err)
		}
	}
}

func TestLyingHostsAreFoundOut(t *testing.T) {
	dir, m := write(t, 100, 1, checkpoint.Options{})
	static := http.FileServerFS(os.DirFS(dir))
	lie := func(file string, answer http.HandlerFunc) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, file) {
				answer(w, r)
				return
			}
			static.ServeHTTP(w, r)
		})
	}
	other, _ := write(t, 100, 2, checkpoint.Options{})
	for name, h := range map[string]http.Handler{
		"other weights": lie(checkpoint.WeightsFile, http.FileServerFS(os.DirFS(other)).ServeHTTP),
		"short weights": lie(checkpoint.WeightsFile, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }),
		"long weights": lie(checkpoint.WeightsFile, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 0-7/1000000")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(make([]byte, m.Files[0].Bytes))
		}),
		"other range": lie(checkpoint.WeightsFile, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Range", "bytes 7-14/1000000")
			w.WriteHeader(http.StatusPartialContent)
		}),
		"no manifest":   lie(checkpoint.ManifestFile, http.NotFound),
		"endless":       lie(checkpoint.ManifestFile, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 64<<20)) }),
		"a web page":    lie(checkpoint.ManifestFile, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }),
		"no weights":    lie(checkpoint.WeightsFile, http.NotFound),
		"fails forever": lie(checkpoint.WeightsFile, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }),
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(h)
			defer s.Close()
			expectNothing(t, mustOpen(t, s.URL, Options{}), anything)
		})
	}
}

func TestAddressesAreChecked(t *testing.T) {
	for _, a := range []string{"", "dir", "ftp://host/x", "s3://host", "s3://k:TOPSECRET@host/AB", "hf://name", "hf://a/b/c/d", "hf://user:TOPSECRET@a/b/c", "hf://a/..", "hf://a/b?tls=1",
		"hf://a/b?x=y", "hf://a/b?revision=a/b", "https://", "https://host/x?y=z", "https://user:TOPSECRET@"} {
		if d, err := Open(a, Options{}); err == nil {
			t.Errorf("%q is taken for %s", a, d)
		} else if strings.Contains(err.Error(), "TOPSECRET") {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
	for a, want := range map[string]string{
		"hf://owner/name":                             "hf://huggingface.co/owner/name",
		"hf://localhost:8000/owner/name?tls=0":        "hf://localhost:8000/owner/name",
		"hf://owner/name?revision=step-000100":        "hf://huggingface.co/owner/name?revision=step-000100",
		"https://user:TOPSECRET@host/x":               "https://user:xxxxx@host/x",
		"s3://key:TOPSECRET@host/bucket/p?region=r-1": "s3://(hidden)@host/bucket/p?region=r-1",
		"s3://host/bucket":                            "s3://(hidden)@host/bucket",
	} {
		if d, err := Open(a, Options{Getenv: env("AWS_ACCESS_KEY_ID", "key", "AWS_SECRET_ACCESS_KEY", "TOPSECRET")}); err != nil || d.String() != want {
			t.Errorf("%q is %v, %v, want %s", a, d, err, want)
		} else {
			d.Close()
		}
	}
	if _, err := Open("s3://host/bucket", Options{Getenv: env("AWS_ACCESS_KEY_ID", "key")}); err == nil {
		t.Error("half of the credentials are taken")
	}
}

// pythonClient uploads a file of each kind with the package that everybody uses, and reads them.
const pythonClient = `
import os, sys
from huggingface_hub import HfApi, hf_hub_download
api = HfApi(endpoint=os.environ["HF_ENDPOINT"], token=os.environ["HF_TOKEN"])
api.create_repo("owner/name", exist_ok=True)
api.upload_folder(repo_id="owner/name", folder_path=sys.argv[1], commit_message="from python")
api.create_tag("owner/name", tag="python")
assert "python" in [t.name for t in api.list_repo_refs("owner/name").tags]
api.delete_tag("owner/name", tag="python")
p = hf_hub_download("owner/name", "model.safetensors", endpoint=os.environ["HF_ENDPOINT"], token=os.environ["HF_TOKEN"], local_dir=sys.argv[2])
assert open(p, "rb").read() == open(os.path.join(sys.argv[1], "model.safetensors"), "rb").read()
`

// The hub of these tests is one that the package huggingface_hub can use: what it uploads we fetch, so our client and it mean the same.
func TestHubIsAsPythonKnowsIt(t *testing.T) {
	if err := exec.Command("python3", "-c", "import huggingface_hub").Run(); err != nil {
		t.Skip("no python3 with huggingface_hub in PATH: .ci/run installs one")
	}
	for _, chunk := range []int{0, 1000} {
		h := newFakeHub(t)
		h.chunk = chunk
		dir, m := write(t, 100, 1, checkpoint.Options{})
		home := t.TempDir()
		cmd := exec.Command("python3", "-c", pythonClient, dir, filepath.Join(home, "download"))
		cmd.Env = append(os.Environ(), "HF_ENDPOINT="+h.URL, "HF_TOKEN="+h.token, "HF_HOME="+home, "HF_HUB_DISABLE_XET=1", "HF_HUB_DISABLE_PROGRESS_BARS=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		expectFetch(t, mustOpen(t, h.address(), Options{}), m)
	}
}

func TestNoCredentialsAreShown(t *testing.T) {
	for address, want := range map[string]bool{
		"hf://owner/name": true, "hf://owner/name@main": true, "https://models.example.org/run": true,
		"https://user:secret@models.example.org/run": false, "s3://KEY:SECRET@host/bucket": false, "s3://host/bucket": false,
		"./checkpoint": false, "": false,
	} {
		if IsPublic(address) != want {
			t.Errorf("IsPublic(%q) is %v", address, !want)
		}
	}
}
