package depot

import (
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/checkpoint"
)

// upload is a checkpoint to upload.
type upload struct {
	dir      string
	manifest checkpoint.Manifest
}

// part is one of the upload's files.
type part struct {
	name string
	size int64
	file checkpoint.File // with its hash
}

// parts returns all files, the manifest last.
func (u upload) parts() []part {
	var all []part
	for _, f := range u.manifest.Files {
		all = append(all, part{f.File, int64(f.Bytes), f})
	}
	n := len(u.manifest.Bytes())
	return append(all, part{checkpoint.ManifestFile, int64(n), checkpoint.File{File: checkpoint.ManifestFile, Bytes: uint64(n), SHA256: u.manifest.Hash()}})
}

// open opens a file.
func (u upload) open(p part) (*os.File, error) { return os.Open(filepath.Join(u.dir, p.name)) }
