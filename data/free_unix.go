//go:build linux || darwin

package data

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"syscall"
)

// Free returns how many bytes this user may still write to the disk of dir, which need not exist
// yet; MaxUint64 if nothing tells.
func Free(dir string) uint64 {
	for {
		var s syscall.Statfs_t
		err := syscall.Statfs(dir, &s)
		if err == nil {
			return s.Bavail * uint64(s.Bsize)
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return math.MaxUint64
		}
		dir = parent
	}
}
