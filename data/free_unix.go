//go:build linux || darwin

package data

import (
	"math"
	"syscall"
)

// freeBytes returns how much this user may still write to the disk of dir, MaxUint64 if nothing
// tells.
func freeBytes(dir string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return math.MaxUint64
	}
	return s.Bavail * uint64(s.Bsize)
}
