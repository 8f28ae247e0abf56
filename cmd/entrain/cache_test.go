package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// shelfOfModels is a host with checkpoints of the same size, and a user's cache of them.
type shelfOfModels struct {
	*shell
	model.Cache
	host    *httptest.Server
	hashes  map[string]wire.Hash // by the checkpoint's name
	bytes   uint64               // of each
	fetched atomic.Int32         // files of weights
}

func newShelfOfModels(t *testing.T, names ...string) *shelfOfModels {
	m := &shelfOfModels{shell: newShell(t), hashes: map[string]wire.Hash{}}
	m.Cache.Dir = filepath.Join(m.console.places.Cache, "checkpoints")
	from, _ := writeForeign(t)
	root := t.TempDir()
	for _, name := range names {
		m.ok("model", "import", from, "-o", filepath.Join(root, name), "--name", name)
		saved, err := checkpoint.OpenLocal(os.DirFS(filepath.Join(root, name)))
		if err != nil {
			t.Fatal(err)
		}
		m.hashes[name], m.bytes = saved.Manifest.Hash(), uint64(len(saved.Manifest.Bytes()))
		for _, f := range saved.Manifest.Files {
			m.bytes += f.Bytes
		}
	}
	files := http.FileServerFS(os.DirFS(root))
	m.host = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".safetensors") {
			m.fetched.Add(1)
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(m.host.Close)
	m.room(2)
	return m
}

// room lets the cache be as large as so many models.
func (m *shelfOfModels) room(models uint64) {
	m.env["ENTRAIN_CACHE_MAX"] = fmt.Sprint(models * m.bytes)
}

// args are those of a command that reads a model at its address.
func (m *shelfOfModels) args(name string) []string {
	return []string{"model", "generate", m.host.URL + "/" + name, "--prompt", "All", "--tokens", "1"}
}

// read reads a model at its address, and returns what people are told.
func (m *shelfOfModels) read(name string) string {
	m.t.Helper()
	_, words, err := m.run(m.args(name)...)
	if err != nil {
		m.t.Fatal(err)
	}
	return words
}

// age makes a model's last use so many minutes old.
func (m *shelfOfModels) age(name string, minutes time.Duration) {
	m.t.Helper()
	at := time.Now().Add(-minutes * time.Minute)
	if err := os.Chtimes(filepath.Join(m.Path(m.hashes[name]), checkpoint.ManifestFile), at, at); err != nil {
		m.t.Fatal(err)
	}
}

// has expects the cache to have these models and no others, and nothing temporary.
func (m *shelfOfModels) has(want ...string) {
	m.t.Helper()
	list, err := os.ReadDir(m.Cache.Dir)
	if err != nil {
		m.t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		for name, hash := range m.hashes {
			if e.Name() == hash.String() {
				got = append(got, name)
			}
		}
		if strings.HasPrefix(e.Name(), atomicfile.TempPrefix) {
			m.t.Errorf("the cache still has %s", e.Name())
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		m.t.Errorf("the cache has %q, want %q", got, want)
	}
}

func TestTheCacheKeepsWhatWasUsedLast(t *testing.T) {
	m := newShelfOfModels(t, "a", "b", "c", "d")
	m.read("a")
	m.read("b")
	m.age("a", 30)
	m.age("b", 20)
	if words := m.read("a"); words != "" || m.fetched.Load() != 2 {
		t.Errorf("a model in the cache is fetched again: %q", words)
	}
	words := m.read("c")
	m.has("a", "c")
	if want := fmt.Sprintf("keeps %s of what was used last: step 0 of b (%s)\n", view.Bytes(2*m.bytes), view.Bytes(m.bytes)); !strings.HasSuffix(words, want) {
		t.Errorf("it says %q, want %q", words, want)
	}
	// What was used a moment ago stays, though it is too much.
	m.read("d")
	m.has("a", "c", "d")
	m.age("a", 2)
	m.age("c", 3)
	m.age("d", 4)
	m.read("b")
	m.has("a", "b")
	// The model that was fetched stays, however large it is.
	m.age("a", 2)
	m.age("b", 2)
	m.room(1)
	m.read("d")
	m.has("d")
	m.env["ENTRAIN_CACHE_MAX"] = "much"
	m.age("d", 2)
	m.fails(m.args("a"), "ENTRAIN_CACHE_MAX", "much")
	m.has("d")
	delete(m.env, "ENTRAIN_CACHE_MAX")
	m.read("a")
	m.has("a", "d")
}

// What is not a fetched checkpoint is neither counted nor removed, but for what an interrupted fetch left.
func TestOnlyCheckpointsLeaveTheCache(t *testing.T) {
	m := newShelfOfModels(t, "a", "b", "c")
	m.read("a")
	m.age("a", 10)
	other := t.TempDir()
	writeFile(t, filepath.Join(other, "kept"), "")
	foreign := strings.Repeat("ab", 32)
	past := time.Now().Add(-2 * model.CacheTempAge)
	in := func(name string) string { return filepath.Join(m.Cache.Dir, name) }
	manifest, err := os.ReadFile(filepath.Join(m.Path(m.hashes["a"]), checkpoint.ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	ended, fetching := atomicfile.TempPrefix+"ended", atomicfile.TempPrefix+"fetching"
	for _, dir := range []string{"mine", foreign, ended, fetching} {
		if err := os.Mkdir(in(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		file := writeFile(t, filepath.Join(in(dir), checkpoint.ManifestFile), string(manifest))
		if err := os.Chtimes(in(dir), past, past); err != nil {
			t.Fatal(err)
		}
		if dir == fetching { // its one file is being written
			continue
		}
		if err := os.Chtimes(file, past, past); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, in("notes"), "")
	if err := os.Symlink(other, in(strings.Repeat("cd", 32))); err != nil {
		t.Fatal(err)
	}
	m.read("b")
	if words := m.read("c"); !strings.Contains(words, "step 0 of a (") {
		t.Errorf("it says %q", words)
	}
	for _, path := range []string{in("mine"), in(foreign), in("notes"), in(strings.Repeat("cd", 32)), filepath.Join(other, "kept"), in(fetching)} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	if err := os.RemoveAll(in(fetching)); err != nil {
		t.Fatal(err)
	}
	m.has("b", "c") // and not what has ended
}

// Somebody who reads a model keeps it, however old it is, and is not disturbed by others who fetch, remove, or read the same.
func TestWhatIsInUseStaysInTheCache(t *testing.T) {
	m := newShelfOfModels(t, "a", "b", "c")
	m.room(1)
	m.read("a")
	var releases [2]func()
	for i := range releases {
		var err error
		if releases[i], err = m.Use(m.hashes["a"]); err != nil {
			t.Fatal(err)
		}
		m.age("a", 30)
	}
	m.read("b")
	m.has("a", "b")
	releases[0]()
	m.age("b", 20)
	m.read("c")
	m.has("a", "c")
	if _, err := checkpoint.Open(os.DirFS(m.Path(m.hashes["a"])), m.hashes["a"]); err != nil {
		t.Error(err)
	}
	releases[1]()
	m.age("c", 20)
	m.read("b")
	m.has("b")

	// A damaged model is fetched again.
	m.room(3)
	if err := os.Remove(filepath.Join(m.Path(m.hashes["b"]), checkpoint.ConfigFile)); err != nil {
		t.Fatal(err)
	}
	m.read("b")
	m.read("b")
	if n := m.fetched.Load(); n != 5 {
		t.Errorf("models were fetched %d times", n)
	}
}

// Commands that fetch, read and remove the same few models at once all get what they asked for.
func TestTheCacheIsSharedByManyAtOnce(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d"}
	m := newShelfOfModels(t, names...)
	m.room(1)
	want := map[string]string{}
	for _, name := range names {
		want[name] = m.ok(append(m.args(name), "--seed", "1")...)
	}
	var removals atomic.Int32
	for round := range 5 {
		// All want the one that is missing first. Whoever has fetched it removes the others, while some read these already.
		for _, name := range names {
			m.age(name, 60)
		}
		missing := names[round%len(names)]
		if err := os.RemoveAll(m.Path(m.hashes[missing])); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				s := newShell(t)
				s.console.places, s.env = m.console.places, m.env
				for j, name := range names {
					if name = missing; j > 0 {
						name = names[(round+1+(i+j)%(len(names)-1))%len(names)]
					}
					out, words, err := s.run(append(m.args(name), "--seed", "1")...)
					if err != nil || out != want[name] {
						t.Errorf("%s: %q instead of %q: %v, %s", name, out, want[name], err, words)
					}
					if strings.Contains(words, "removed from the cache") {
						removals.Add(1)
					}
				}
			})
		}
		all.Wait()
		m.has(names...)
	}
	if removals.Load() == 0 {
		t.Error("nothing was removed while others read: the test shows nothing")
	}
}
