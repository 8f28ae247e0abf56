package depot

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/wire"
)

// hub is a model on a hub that speaks the HTTP API of huggingface.co, as the Python package
// huggingface_hub uses it:
//
//	POST /api/repos/create                             makes the model
//	POST /api/models/{model}/preupload/{revision}      sorts files: commit or large-file storage
//	POST /{model}.git/info/lfs/objects/batch           Git LFS addresses for one or several pieces
//	POST /api/models/{model}/commit/{revision}         the commit, a JSON object a line
//	POST, DELETE /api/models/{model}/tag/{...}         tags; GET .../refs lists them
//	GET  /{model}/resolve/{revision}/{file}            a file
type hub struct {
	base     string // https://host
	model    string // owner/name
	revision string
	token    string
	options  Options
}

// endpoint returns the hub of addresses without a host: that of HF_ENDPOINT, as in Hugging Face's
// programs, or huggingface.co.
func endpoint(o Options) (base string, err error) {
	text := strings.TrimSuffix(o.Getenv("HF_ENDPOINT"), "/")
	if text == "" {
		return "https://huggingface.co", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
		return "", errors.New("HF_ENDPOINT is not of the form https://host")
	}
	return text, nil
}

// parseHub reads hf://[host/]owner/name[?revision=r&tls=0].
func parseHub(address string, o Options) (*hub, error) {
	const form = "the address is not of the form hf://owner/name, or hf://host:port/owner/name?revision=main&tls=0"
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Fragment != "" || u.Host == "" {
		return nil, errors.New(form)
	}
	parts := strings.Split(strings.Trim(u.Host+u.Path, "/"), "/")
	base := "https://" + parts[0]
	if len(parts) == 2 {
		if base, err = endpoint(o); err != nil {
			return nil, err
		}
		parts = append([]string{""}, parts...)
	}
	if len(parts) != 3 || !plain(parts[1]) || !plain(parts[2]) {
		return nil, errors.New(form)
	}
	h := &hub{base: base, model: parts[1] + "/" + parts[2], revision: "main", options: o}
	for name, values := range u.Query() {
		switch value := values[len(values)-1]; {
		case name == "tls" && value == "0" && parts[0] != "":
			h.base = "http://" + parts[0]
		case name == "revision" && plain(value):
			h.revision = value
		default:
			return nil, errors.New(form)
		}
	}
	// The token is for one hub, and may allow to write all that its owner has there: an address of
	// another hub, which a stranger may have recommended, does not get it.
	if own, err := endpoint(o); err == nil && own == h.base {
		h.token = o.Getenv("HF_TOKEN")
	}
	return h, nil
}

// plain reports whether s is a name that needs no escaping.
func plain(s string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return s != "" && s[0] != '.' && strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune(allowed, r) }) < 0
}

// String returns the address.
func (h *hub) String() string {
	s := "hf://" + h.base[strings.Index(h.base, "//")+2:] + "/" + h.model
	if h.revision != "main" {
		s += "?revision=" + h.revision
	}
	return s
}

// web returns where the model's files are read.
func (h *hub) web() *web {
	return &web{base: h.base + "/" + h.model + "/resolve/" + h.revision + "/", token: h.token, shown: h.String(), options: h.options}
}

func (h *hub) source(context.Context, bool) (source, error) { return h.web(), nil }

// api sends a request to the hub and decodes the answer into reply, unless that is nil.
func (h *hub) api(ctx context.Context, method, path, contentType string, body []byte, reply any) error {
	return h.options.retry(ctx, func() error {
		return h.send(ctx, method, h.base+path, contentType, body, h.token, reply)
	})
}

// repliesMax bounds a response of the API, in bytes.
const repliesMax = 16 << 20

func (h *hub) send(ctx context.Context, method, address, contentType string, body []byte, token string, reply any) error {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return permanent{err}
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
		request.Header.Set("Accept", strings.Replace(contentType, "application/x-ndjson", jsonType, 1))
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := h.options.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return &answerError{response.StatusCode, statusError(method+" "+request.URL.Path, response)}
	}
	if reply == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, repliesMax)).Decode(reply); err != nil {
		return permanent{fmt.Errorf("%s %s: unexpected answer: %w", method, request.URL.Path, err)}
	}
	return nil
}

// answerError is a failure response of the hub.
type answerError struct {
	status int
	error
}

// Unwrap returns the error.
func (e *answerError) Unwrap() error { return e.error }

// answered reports whether err is a response with the given status.
func answered(err error, status int) bool {
	var a *answerError
	return errors.As(err, &a) && a.status == status
}

// The types of bodies.
const (
	jsonType   = "application/json"
	linesType  = "application/x-ndjson"
	lfsType    = "application/vnd.git-lfs+json"
	sampleSize = 512 // bytes of a file that the hub classifies it by
)

// upload makes a commit of the checkpoint.
func (h *hub) upload(ctx context.Context, u upload) error {
	old, is := h.newest(ctx)
	if !is || old.Hash() != u.manifest.Hash() {
		modes, err := h.modes(ctx, u)
		if answered(err, http.StatusNotFound) {
			if err = h.create(ctx); err == nil {
				modes, err = h.modes(ctx, u)
			}
		}
		if err != nil {
			return err
		}
		if err := h.uploadLarge(ctx, u, modes); err != nil {
			return err
		}
		if err := h.commit(ctx, u, modes, old); err != nil {
			return err
		}
	}
	tag := fmt.Appendf(nil, `{"tag":%q}`, StepName(u.manifest.Step))
	err := h.api(ctx, http.MethodPost, "/api/models/"+h.model+"/tag/"+h.revision, jsonType, tag, nil)
	if answered(err, http.StatusConflict) { // the step exists from a history that was rolled back
		if err = h.untag(ctx, StepName(u.manifest.Step)); err == nil {
			err = h.api(ctx, http.MethodPost, "/api/models/"+h.model+"/tag/"+h.revision, jsonType, tag, nil)
		}
	}
	return err
}

// newest returns the manifest of the stored checkpoint.
func (h *hub) newest(ctx context.Context) (checkpoint.Manifest, bool) {
	from := h.web()
	defer from.close()
	got, err := from.read(ctx, checkpoint.ManifestFile, 0, checkpoint.ManifestBytesMax+1)
	if err != nil {
		return checkpoint.Manifest{}, false
	}
	m, err := checkpoint.ParseManifest(got.bytes)
	return m, err == nil
}

// create makes the model.
func (h *hub) create(ctx context.Context) error {
	owner, name, _ := strings.Cut(h.model, "/")
	body := fmt.Appendf(nil, `{"name":%q,"organization":%q,"type":"model"}`, name, owner)
	err := h.api(ctx, http.MethodPost, "/api/repos/create", jsonType, body, nil)
	if answered(err, http.StatusConflict) {
		return nil // another member made it
	}
	return err
}

// modes asks the hub which files are large: true for those.
func (h *hub) modes(ctx context.Context, u upload) (map[string]bool, error) {
	type file struct {
		Path   string `json:"path"`
		Sample string `json:"sample"`
		Size   int64  `json:"size"`
	}
	var ask struct {
		Files []file `json:"files"`
	}
	for _, p := range u.parts() {
		sample, err := u.begin(p)
		if err != nil {
			return nil, err
		}
		ask.Files = append(ask.Files, file{p.name, base64.StdEncoding.EncodeToString(sample), p.size})
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	var reply struct {
		Files []struct{ Path, UploadMode string }
	}
	if err := h.api(ctx, http.MethodPost, "/api/models/"+h.model+"/preupload/"+h.revision, jsonType, body, &reply); err != nil {
		return nil, err
	}
	modes := make(map[string]bool)
	for _, f := range reply.Files {
		modes[f.Path] = f.UploadMode == "lfs"
	}
	return modes, nil
}

// begin returns the first bytes of a file.
func (u upload) begin(p part) ([]byte, error) {
	f, err := u.open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, min(sampleSize, p.size))
	_, err = io.ReadFull(f, b)
	return b, err
}

// smallMax bounds the files within a commit, as these are held in memory.
const smallMax = 64 << 20

// commit makes the commit: small files, the hashes of large ones, and the removal of files that
// only the previous checkpoint had.
func (h *hub) commit(ctx context.Context, u upload, modes map[string]bool, old checkpoint.Manifest) error {
	var lines bytes.Buffer
	e := json.NewEncoder(&lines)
	line := func(kind string, value any) error { return e.Encode(map[string]any{"key": kind, "value": value}) }
	summary := fmt.Sprintf("%s: step %d", u.manifest.Run, u.manifest.Step)
	err := line("header", map[string]string{"summary": summary, "description": "manifest " + u.manifest.Hash().String()})
	small := int64(0)
	for _, p := range u.parts() {
		old.Files = slices.DeleteFunc(old.Files, func(f checkpoint.File) bool { return f.File == p.name })
		if modes[p.name] {
			err = errors.Join(err, line("lfsFile", map[string]any{"path": p.name, "algo": "sha256", "oid": p.file.SHA256.String(), "size": p.size}))
			continue
		}
		if small += p.size; small > smallMax {
			return permanent{fmt.Errorf("the hub requires %s (%d bytes) in the commit rather than in large-file storage", p.name, p.size)}
		}
		b, read := u.whole(p)
		err = errors.Join(err, read, line("file", map[string]string{"path": p.name, "encoding": "base64", "content": base64.StdEncoding.EncodeToString(b)}))
	}
	for _, f := range old.Files {
		err = errors.Join(err, line("deletedFile", map[string]string{"path": f.File}))
	}
	if err != nil {
		return err
	}
	return h.api(ctx, http.MethodPost, "/api/models/"+h.model+"/commit/"+h.revision, linesType, lines.Bytes(), nil)
}

// whole reads a file and checks its hash.
func (u upload) whole(p part) ([]byte, error) {
	f, err := u.open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, p.size+1))
	if err == nil && wire.SHA256(b) != p.file.SHA256 {
		err = &checkpoint.CorruptError{File: p.name, Reason: "it changed since it was written"}
	}
	return b, err
}

func (h *hub) untag(ctx context.Context, tag string) error {
	err := h.api(ctx, http.MethodDelete, "/api/models/"+h.model+"/tag/"+tag, "", nil, nil)
	if answered(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// prune removes the tags of all but the newest checkpoints up to a step: the hub keeps the history
// but no longer names them.
func (h *hub) prune(ctx context.Context, keep int, last uint32) error {
	var refs struct {
		Tags []struct{ Name string }
	}
	if err := h.api(ctx, http.MethodGet, "/api/models/"+h.model+"/refs", "", nil, &refs); err != nil {
		return err
	}
	var steps []uint32
	for _, t := range refs.Tags {
		if step, ok := parseStep(t.Name); ok && step <= last {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	for _, step := range steps[:max(0, len(steps)-keep)] {
		if err := h.untag(ctx, StepName(step)); err != nil {
			return err
		}
	}
	return nil
}

// partNumber returns the number of a part of a large file from its key in the hub's answer.
func partNumber(key string) (int, bool) {
	n, err := strconv.Atoi(key)
	return n, err == nil && n > 0 && n <= piecesMax
}
