package checkpoint

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/entrain-network/entrain/canonical"
	"github.com/entrain-network/entrain/wire"
)

// Version is the version of the manifest.
const Version = 1

// A Manifest lists the files of a checkpoint.
type Manifest struct {
	Version int    `json:"version"`
	Run     string `json:"run"`
	Epoch   uint32 `json:"epoch"`
	Round   uint32 `json:"round"`
	Step    uint32 `json:"step"`
	// merkle.BlobRoot of the float32 parameters, as the run agreed, whatever DType is
	Params    wire.Hash `json:"params"`
	DType     string    `json:"dtype"` // element type in the files: "F32" or "BF16"
	Tokenizer string    `json:"tokenizer"`
	Files     []File    `json:"files"` // sorted by name, without the manifest
}

// A File is one file of a checkpoint.
type File struct {
	File   string    `json:"file"`
	Bytes  uint64    `json:"bytes"`
	SHA256 wire.Hash `json:"sha256"`
}

// Bytes returns the canonical bytes of m: JSON indented by two spaces, the fields in the order of
// the struct, and a newline.
func (m Manifest) Bytes() []byte { return canonical.JSON(m) }

// Hash returns the SHA-256 of Bytes, which `sha256sum manifest.json` prints.
func (m Manifest) Hash() wire.Hash { return wire.SHA256(m.Bytes()) }

// ParseManifest reads canonical bytes. It refuses all others, and any manifest that Check refuses.
func ParseManifest(b []byte) (Manifest, error) {
	return canonical.Parse[Manifest](b, "manifest of a checkpoint", ManifestBytesMax)
}

// Check returns what is wrong with m, or nil.
func (m Manifest) Check() error {
	switch {
	case m.Version != Version:
		return fmt.Errorf("unknown version %d, want %d", m.Version, Version)
	case !printable(m.Run):
		return fmt.Errorf("run %.80q is not a printable name of 1 to %d bytes", m.Run, RunBytesMax)
	case !printable(m.Tokenizer):
		return fmt.Errorf("tokenizer %.80q is not a printable name of 1 to %d bytes", m.Tokenizer, RunBytesMax)
	case m.DType != F32.String() && m.DType != BF16.String():
		return fmt.Errorf("dtype %.80q is not F32 or BF16", m.DType)
	case len(m.Files) > filesMax:
		return fmt.Errorf("it lists %d files, more than %d", len(m.Files), filesMax)
	}
	for i, f := range m.Files {
		if !plainName(f.File) || f.File == ManifestFile {
			return fmt.Errorf("files[%d]: %.80q is not a plain file name", i, f.File)
		}
		if i > 0 && f.File <= m.Files[i-1].File {
			return fmt.Errorf("files[%d]: %q is repeated or not in order", i, f.File)
		}
		if f.Bytes > 1<<62 {
			return fmt.Errorf("files[%d]: %q has %d bytes", i, f.File, f.Bytes)
		}
	}
	return nil
}

// Is returns how m differs from what a reader demands, or nil: the manifest with a hash, or one of
// the parameters with that hash, on which a run agreed. The zero hash demands nothing. Only a
// checkpoint whose files hold float32 can be compared with the hash of parameters ([Saved.Params]
// does): rounded weights are the word of the member that wrote the manifest.
func (m Manifest) Is(want wire.Hash) error {
	switch {
	case want.IsZero() || m.Hash() == want:
	case m.Params != want:
		return fmt.Errorf("the checkpoint of step %d has the parameters %s and the manifest %s, not %s", m.Step, m.Params, m.Hash(), want)
	case m.DType != F32.String():
		return fmt.Errorf("the checkpoint of step %d has weights of type %s, so nothing shows that they are the parameters %s: get the one with weights of type F32", m.Step, m.DType, want)
	}
	return nil
}

// find returns the file of that name.
func (m Manifest) find(name string) (File, bool) {
	for _, f := range m.Files {
		if f.File == name {
			return f, true
		}
	}
	return File{}, false
}

// printable reports whether s is a short text that is safe to print in a terminal.
func printable(s string) bool {
	return s != "" && len(s) <= RunBytesMax && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// plainName reports whether s names a file without a directory, on every system.
func plainName(s string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return s != "" && len(s) <= 128 && s[0] != '.' && s[0] != '-' && strings.Trim(s, allowed) == ""
}
