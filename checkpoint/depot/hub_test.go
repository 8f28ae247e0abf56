package depot

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/checkpoint"
)

// fakeHub is a hub in memory with one model, "owner/name", as far as clients of huggingface.co need one. The Python package huggingface_hub uses
// it in TestHubIsAsPythonKnowsIt, so that what our client does to it is what it would do to a real one.
type fakeHub struct {
	*httptest.Server
	token string
	chunk int // size of pieces of large files; 0: in one piece

	mu      sync.Mutex
	made    bool
	files   map[string][]byte            // of the newest commit
	history map[string]map[string][]byte // by commit
	tags    map[string]string            // commits
	head    string
	stored  map[string][]byte // large files by their hash
	pieces  map[string][]byte
	commits int
	fail    int // so many requests to come fail
	faults  []string
}

func newFakeHub(t *testing.T) *fakeHub {
	h := &fakeHub{token: "hf_TOPSECRET", files: map[string][]byte{}, history: map[string]map[string][]byte{}, tags: map[string]string{}, stored: map[string][]byte{},
		pieces: map[string][]byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/repos/create", h.private(h.create))
	mux.HandleFunc("POST /api/models/owner/name/preupload/{revision}", h.private(h.needsModel(h.preupload)))
	mux.HandleFunc("POST /owner/{repo}/info/lfs/objects/batch", h.private(h.needsModel(h.batch)))
	mux.HandleFunc("PUT /storage/{oid}", h.store)
	mux.HandleFunc("PUT /storage/{oid}/{piece}", h.storePiece)
	mux.HandleFunc("POST /complete/{oid}", h.complete)
	mux.HandleFunc("POST /verify", h.private(h.verify))
	mux.HandleFunc("POST /api/models/owner/name/commit/{revision}", h.private(h.needsModel(h.commit)))
	mux.HandleFunc("POST /api/models/owner/name/tag/{revision}", h.private(h.tag))
	mux.HandleFunc("DELETE /api/models/owner/name/tag/{tag}", h.private(h.untag))
	mux.HandleFunc("GET /api/models/owner/name/refs", h.refs)
	mux.HandleFunc("GET /api/models/owner/name/revision/{revision}", h.info)
	mux.HandleFunc("GET /api/models/owner/name", h.info)
	mux.HandleFunc("GET /api/models/owner/name/tree/{revision}", h.tree)
	mux.HandleFunc("GET /owner/name/resolve/{revision}/{file}", h.resolve)
	// What only the Python package asks for.
	mux.HandleFunc("POST /api/validate-yaml", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"errors": []any{}, "warnings": []any{}})
	})
	mux.HandleFunc("GET /api/agent-harnesses", http.NotFound)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.faults = append(h.faults, r.Method+" "+r.URL.String())
		http.NotFound(w, r)
	})
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.fail > 0 {
			h.fail--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		h.Close()
		for _, f := range h.faults {
			t.Errorf("the hub was asked for what it does not know: %s", f)
		}
	})
	return h
}

// address is the model's.
func (h *fakeHub) address() string {
	return "hf://" + strings.TrimPrefix(h.URL, "http://") + "/owner/name?tls=0"
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (h *fakeHub) private(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+h.token {
			http.Error(w, `{"error":"Invalid username or password."}`, http.StatusUnauthorized)
			return
		}
		f(w, r)
	}
}

func (h *fakeHub) needsModel(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !h.made {
			http.Error(w, `{"error":"Repository not found"}`, http.StatusNotFound)
			return
		}
		f(w, r)
	}
}

func (h *fakeHub) create(w http.ResponseWriter, r *http.Request) {
	var o struct{ Name, Organization, Type string }
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Name != "name" || o.Organization != "owner" || o.Type != "model" && o.Type != "" {
		http.Error(w, "what?", http.StatusBadRequest)
		return
	}
	if h.made {
		w.WriteHeader(http.StatusConflict)
	}
	h.made = true
	reply(w, map[string]string{"url": h.URL + "/owner/name"})
}

func (h *fakeHub) preupload(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Files []struct {
			Path, Sample string
			Size         int64
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	type mode struct {
		Path   string `json:"path"`
		Mode   string `json:"uploadMode"`
		Ignore bool   `json:"shouldIgnore"`
	}
	var modes []mode
	for _, f := range ask.Files {
		m := mode{Path: f.Path, Mode: "regular"}
		if strings.HasSuffix(f.Path, ".safetensors") {
			m.Mode = "lfs"
		}
		modes = append(modes, m)
	}
	reply(w, map[string]any{"files": modes})
}

func (h *fakeHub) batch(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Operation string
		Algorithm string `json:"hash_algo"`
		Objects   []struct {
			OID  string
			Size int
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil || ask.Operation != "upload" || ask.Algorithm != "sha256" || r.PathValue("repo") != "name.git" ||
		r.Header.Get("Content-Type") != "application/vnd.git-lfs+json" {
		http.Error(w, fmt.Sprint("what? ", err), http.StatusBadRequest)
		return
	}
	var objects []map[string]any
	for _, o := range ask.Objects {
		object := map[string]any{"oid": o.OID, "size": o.Size}
		if _, ok := h.stored[o.OID]; !ok {
			upload := map[string]any{"href": h.URL + "/storage/" + o.OID + "?signature=TOPSECRET"}
			if h.chunk > 0 {
				header := map[string]string{"chunk_size": fmt.Sprint(h.chunk)}
				for i := 0; i*h.chunk < o.Size; i++ {
					header[fmt.Sprint(i+1)] = fmt.Sprintf("%s/storage/%s/%05d", h.URL, o.OID, i+1)
				}
				upload = map[string]any{"href": h.URL + "/complete/" + o.OID + "?signature=TOPSECRET", "header": header}
			}
			object["actions"] = map[string]any{"upload": upload, "verify": map[string]any{"href": h.URL + "/verify"}}
		}
		objects = append(objects, object)
	}
	reply(w, map[string]any{"transfer": map[bool]string{true: "multipart", false: "basic"}[h.chunk > 0], "objects": objects})
}

func (h *fakeHub) store(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	sum := sha256.Sum256(b)
	if err != nil || hex.EncodeToString(sum[:]) != r.PathValue("oid") || r.URL.Query().Get("signature") != "TOPSECRET" || r.Header.Get("Authorization") != "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.stored[r.PathValue("oid")] = b
}

func (h *fakeHub) storePiece(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	key := r.PathValue("oid") + "/" + r.PathValue("piece")
	h.pieces[key] = b
	w.Header().Set("ETag", `"`+key+`"`)
}

func (h *fakeHub) complete(w http.ResponseWriter, r *http.Request) {
	var o struct {
		OID   string
		Parts []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || r.URL.Query().Get("signature") != "TOPSECRET" || r.Header.Get("Authorization") != "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var b []byte
	for i, p := range o.Parts {
		key := fmt.Sprintf("%s/%05d", o.OID, i+1)
		if p.PartNumber != i+1 || strings.Trim(p.ETag, `"`) != key {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		b = append(b, h.pieces[key]...)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != o.OID || o.OID != r.PathValue("oid") {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.stored[o.OID] = b
}

func (h *fakeHub) verify(w http.ResponseWriter, r *http.Request) {
	var o struct {
		OID  string
		Size int
	}
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil || len(h.stored[o.OID]) != o.Size {
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (h *fakeHub) commit(w http.ResponseWriter, r *http.Request) {
	next := map[string][]byte{}
	for k, v := range h.files {
		next[k] = v
	}
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 64<<20)
	for n := 0; lines.Scan(); n++ {
		var line struct {
			Key   string
			Value struct {
				Summary, Path, Content, Encoding, OID string
				Size                                  int
			}
		}
		err := json.Unmarshal(lines.Bytes(), &line)
		v := line.Value
		switch {
		case err != nil:
		case n == 0 && (line.Key != "header" || v.Summary == ""):
			err = fmt.Errorf("it begins with %q", line.Key)
		case line.Key == "file":
			next[v.Path], err = base64.StdEncoding.DecodeString(v.Content)
		case line.Key == "lfsFile":
			b, ok := h.stored[v.OID]
			if next[v.Path] = b; !ok || len(b) != v.Size {
				err = fmt.Errorf("%s is not stored", v.OID)
			}
		case line.Key == "deletedFile":
			if _, ok := next[v.Path]; !ok {
				err = fmt.Errorf("there is no %s", v.Path)
			}
			delete(next, v.Path)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	h.commits++
	h.head = fmt.Sprintf("%040d", h.commits)
	h.files, h.history[h.head] = next, next
	reply(w, map[string]string{"commitUrl": h.URL + "/owner/name/commit/" + h.head, "commitOid": h.head})
}

func (h *fakeHub) tag(w http.ResponseWriter, r *http.Request) {
	var o struct{ Tag string }
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if _, ok := h.tags[o.Tag]; ok {
		w.WriteHeader(http.StatusConflict)
		return
	}
	h.tags[o.Tag] = h.head
}

func (h *fakeHub) untag(w http.ResponseWriter, r *http.Request) {
	if _, ok := h.tags[r.PathValue("tag")]; !ok {
		w.WriteHeader(http.StatusNotFound)
	}
	delete(h.tags, r.PathValue("tag"))
}

func (h *fakeHub) refs(w http.ResponseWriter, _ *http.Request) {
	tags := []map[string]string{}
	for name, commit := range h.tags {
		tags = append(tags, map[string]string{"name": name, "ref": "refs/tags/" + name, "targetCommit": commit})
	}
	reply(w, map[string]any{"branches": []any{}, "converts": []any{}, "tags": tags})
}

func (h *fakeHub) at(revision string) (commit string, files map[string][]byte) {
	commit = h.head
	if c, ok := h.tags[revision]; ok {
		commit = c
	} else if revision != "main" && revision != "" {
		commit = revision
	}
	return commit, h.history[commit]
}

func (h *fakeHub) info(w http.ResponseWriter, r *http.Request) {
	commit, files := h.at(r.PathValue("revision"))
	siblings := []map[string]string{}
	for name := range files {
		siblings = append(siblings, map[string]string{"rfilename": name})
	}
	reply(w, map[string]any{"_id": "1", "id": "owner/name", "modelId": "owner/name", "sha": commit, "private": false, "downloads": 0, "likes": 0, "tags": []string{}, "siblings": siblings})
}

func (h *fakeHub) tree(w http.ResponseWriter, r *http.Request) {
	_, files := h.at(r.PathValue("revision"))
	list := []map[string]any{}
	for name, b := range files {
		sum := sha256.Sum256(b)
		list = append(list, map[string]any{"type": "file", "path": name, "size": len(b), "oid": hex.EncodeToString(sum[:20])})
	}
	reply(w, list)
}

func (h *fakeHub) resolve(w http.ResponseWriter, r *http.Request) {
	commit, files := h.at(r.PathValue("revision"))
	b, ok := files[r.PathValue("file")]
	if !ok {
		w.Header().Set("X-Error-Code", "EntryNotFound")
		http.Error(w, "Entry not found", http.StatusNotFound)
		return
	}
	sum := sha256.Sum256(b)
	w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:])+`"`)
	w.Header().Set("X-Repo-Commit", commit)
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		return
	}
	http.ServeContent(w, r, "", zeroTime, bytes.NewReader(b))
}

// A token is sent to the hub that it is for, and to no other that an address names.
func TestTheTokenGoesToItsHubAlone(t *testing.T) {
	var tokens []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		http.NotFound(w, r)
	}))
	defer s.Close()
	for _, own := range []string{"", "nonsense", "https://" + strings.TrimPrefix(s.URL, "http://"), s.URL} {
		d := mustOpen(t, "hf://"+strings.TrimPrefix(s.URL, "http://")+"/owner/name?tls=0", Options{Getenv: env("HF_TOKEN", "secret", "HF_ENDPOINT", own)})
		if _, err := d.Manifest(t.Context()); err == nil {
			t.Error("a manifest is found")
		}
	}
	if want := []string{"", "", "", "Bearer secret"}; !slices.Equal(tokens, want) {
		t.Errorf("the hub got %q, want %q", tokens, want)
	}
}

// A hub that asks for pieces of a byte, or of more bytes than there are, gets an error and no memory.
func TestPiecesAreBounded(t *testing.T) {
	h := newFakeHub(t)
	d := mustOpen(t, h.address(), Options{Getenv: env("HF_TOKEN", h.token, "HF_ENDPOINT", h.URL)})
	dir, m := write(t, 100, 1, checkpoint.Options{})
	h.chunk = 1
	if err := d.Upload(t.Context(), dir, m, 1); err == nil || !strings.Contains(err.Error(), `pieces of "1" bytes`) {
		t.Errorf("pieces of a byte: %v", err)
	}
	h.chunk = math.MaxInt
	if err := d.Upload(t.Context(), dir, m, 1); err != nil {
		t.Errorf("pieces larger than the file: %v", err)
	}
}
