package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// A CorruptError reports that a file does not match its manifest or its own checksum.
type CorruptError struct {
	File   string // empty for a state, whose file only the caller knows
	Reason string // what is wrong, and the remedy if there is one
}

// Error returns which file is corrupt, and why.
func (e *CorruptError) Error() string {
	if e.File == "" {
		return "state is corrupt: " + e.Reason
	}
	return fmt.Sprintf("checkpoint file %q is corrupt: %s; fetch it again", e.File, e.Reason)
}

// Saved is a checkpoint that can be read.
type Saved struct {
	Config   Config
	Manifest Manifest // zero for an import
	Ends     []uint32 // the tokens that end a text, of which Config has one; nil but for an import

	fsys    fs.FS
	weights []File // their hashes are zero for an import
	checked bool   // by a manifest
	fold    fold   // of an import
}

// Open opens the checkpoint in fsys, whose manifest must have the hash want. Every file is compared
// with the manifest as it is read; a difference is reported as a *CorruptError.
func Open(fsys fs.FS, want wire.Hash) (*Saved, error) {
	b, err := readFile(fsys, ManifestFile, ManifestBytesMax)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	if got := wire.SHA256(b); got != want {
		return nil, fmt.Errorf("open checkpoint: its manifest has hash %s, not %s: it is a different checkpoint, or damaged", got, want)
	}
	return open(fsys, b)
}

// OpenLocal is like Open for the user's own checkpoint, whose manifest is trusted.
func OpenLocal(fsys fs.FS) (*Saved, error) {
	b, err := readFile(fsys, ManifestFile, ManifestBytesMax)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	return open(fsys, b)
}

func open(fsys fs.FS, manifest []byte) (*Saved, error) {
	m, err := ParseManifest(manifest)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	s := &Saved{Manifest: m, fsys: fsys, checked: true}
	b, err := s.File(ConfigFile, ConfigBytesMax)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	var f fold
	if s.Config, f, err = parseConfig(b); err == nil && f != (fold{}) {
		err = errors.New("config.json: it is of a class that a checkpoint of entrain never has")
	}
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	for _, f := range m.Files {
		if strings.HasSuffix(f.File, weightsSuffix) {
			s.weights = append(s.weights, f)
		}
	}
	return s, nil
}

// Import opens a model in Hugging Face's layout without an entrain manifest, such as one to
// continue training from.
func Import(fsys fs.FS) (*Saved, error) {
	s := &Saved{fsys: fsys}
	b, err := readFile(fsys, ConfigFile, ConfigBytesMax)
	if err != nil {
		return nil, fmt.Errorf("import model: %w", err)
	}
	if s.Config, s.fold, err = parseConfig(b); err != nil {
		return nil, fmt.Errorf("import model: %w", err)
	}
	s.Ends = ends(b)
	if b, err := readFile(fsys, GenerationFile, ConfigBytesMax); err == nil {
		s.Ends = append(s.Ends, ends(b)...)
	}
	names := []string{WeightsFile}
	b, err = readFile(fsys, IndexFile, IndexBytesMax)
	if err == nil {
		names, err = Shards(b)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("import model: %w", err)
	}
	for _, name := range names {
		info, err := fs.Stat(fsys, name)
		if errors.Is(err, fs.ErrNotExist) && len(names) == 1 && name == WeightsFile {
			return nil, fmt.Errorf("import model: %w; weights must be in safetensors files, as save_pretrained of transformers writes them", err)
		}
		if err != nil {
			return nil, fmt.Errorf("import model: %w", err)
		}
		s.weights = append(s.weights, File{File: name, Bytes: uint64(info.Size())})
	}
	return s, nil
}

// ends returns the token or tokens that a file of JSON has under eos_token_id.
func ends(b []byte) []uint32 {
	var several struct {
		EOS []uint32 `json:"eos_token_id"`
	}
	var one struct {
		EOS *uint32 `json:"eos_token_id"`
	}
	if json.Unmarshal(b, &several) != nil && json.Unmarshal(b, &one) == nil && one.EOS != nil {
		return []uint32{*one.EOS}
	}
	return several.EOS
}

// Shards returns the files of weights that an index, model.safetensors.index.json, names.
func Shards(b []byte) ([]string, error) {
	var x index
	if err := json.Unmarshal(b, &x); err != nil {
		return nil, fmt.Errorf("%s: %w", IndexFile, err)
	}
	files := make(map[string]bool)
	for _, name := range x.Where {
		if !plainName(name) || !strings.HasSuffix(name, weightsSuffix) {
			return nil, fmt.Errorf("%s: %.80q is not the name of a safetensors file", IndexFile, name)
		}
		files[name] = true
	}
	if len(files) == 0 || len(files) > filesMax {
		return nil, fmt.Errorf("%s names %d files, not 1 to %d", IndexFile, len(files), filesMax)
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// File returns one of the checkpoint's files, such as TokenizerFile, compared with the manifest if
// there is one.
func (s *Saved) File(name string, maxBytes int) ([]byte, error) {
	b, err := readFile(s.fsys, name, maxBytes)
	if err != nil || !s.checked {
		return b, err
	}
	f, ok := s.Manifest.find(name)
	if !ok {
		return nil, fmt.Errorf("the manifest does not list %q", name)
	}
	if got := wire.SHA256(b); got != f.SHA256 {
		return nil, &CorruptError{name, fmt.Sprintf("its SHA-256 is %s instead of %s", got, f.SHA256)}
	}
	return b, nil
}

// Chat returns the chat template, or "" if the checkpoint has none.
func (s *Saved) Chat() (string, error) {
	if _, ok := s.Manifest.find(ChatFile); !ok {
		return "", nil
	}
	b, err := s.File(ChatFile, ChatBytesMax)
	return string(b), err
}

// Params reads the parameters into flat, which has layout's length. Each tensor of layout must be
// present once, with its shape, and no other. After an error the contents of flat are undefined.
func (s *Saved) Params(layout tensor.Layout, flat []float32) error {
	if len(flat) != layout.Len() {
		panic("checkpoint: parameters do not have the length of their layout")
	}
	seen := make(map[string]bool)
	found := func(e Entry) error {
		if seen[e.Name] {
			return fmt.Errorf("tensor %q is in two files", e.Name)
		}
		seen[e.Name] = true
		return nil
	}
	for _, f := range s.weights {
		if err := s.readWeights(f, layout, flat, found); err != nil {
			return fmt.Errorf("read checkpoint: %w", err)
		}
	}
	for _, t := range layout.Tensors() {
		if !seen[t.Name] {
			if t.Name == headTensor {
				return fmt.Errorf("read checkpoint: no file has tensor %q of the model; if its head is its embedding, set tie_word_embeddings in %s to true", t.Name, ConfigFile)
			}
			return fmt.Errorf("read checkpoint: no file has tensor %q of the model", t.Name)
		}
	}
	s.fold.apply(s.Config, layout, flat)
	if s.checked && s.Manifest.DType == F32.String() {
		if got := merkle.BlobRoot(tensor.Bytes(flat)); got != s.Manifest.Params {
			return fmt.Errorf("read checkpoint: the parameters have hash %s, but the manifest says %s: a faulty program wrote it", got, s.Manifest.Params)
		}
	}
	return nil
}

// readWeights reads one file of weights. A file that does not match the manifest is corrupt,
// whatever other error its contents cause.
func (s *Saved) readWeights(f File, layout tensor.Layout, flat []float32, found func(Entry) error) error {
	r, err := s.fsys.Open(f.File)
	if err != nil {
		return err
	}
	defer r.Close()
	h := hashing{sum: sha256.New()}
	in := io.TeeReader(io.LimitReader(r, int64(min(f.Bytes, 1<<62))+1), &h)
	err = ReadSafetensors(in, f.Bytes, layout, flat, found)
	if err != nil {
		err = fmt.Errorf("%q: %w", f.File, err)
	}
	if !s.checked {
		return err
	}
	if _, reading := io.Copy(io.Discard, in); reading != nil {
		return fmt.Errorf("%q: %w", f.File, reading)
	}
	if h.n != f.Bytes {
		return &CorruptError{f.File, fmt.Sprintf("it does not have %d bytes", f.Bytes)}
	}
	if got := h.hash(); got != f.SHA256 {
		return &CorruptError{f.File, fmt.Sprintf("its SHA-256 is %s instead of %s", got, f.SHA256)}
	}
	return err
}

// readFile reads a file of at most max bytes.
func readFile(fsys fs.FS, name string, max int) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(f, int64(max)+1)); err != nil {
		return nil, fmt.Errorf("read %q: %w", name, err)
	}
	if b.Len() > max {
		return nil, fmt.Errorf("%q has more than %d bytes", name, max)
	}
	return b.Bytes(), nil
}
