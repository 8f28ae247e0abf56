package ramdisk

import "syscall"

const (
	leastFree = 4 << 30 // bytes that must be free
	noexec    = 1 << 3  // ST_NOEXEC of statfs
	writable  = 1<<1 | 1<<0
)

// inMemory returns the folder of files in memory; "" if it is small, nearly full, not for us, or if
// programs cannot run from it.
func inMemory() string {
	const dir = "/dev/shm"
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil || s.Bavail*uint64(s.Bsize) < leastFree || s.Flags&noexec != 0 || syscall.Access(dir, writable) != nil {
		return ""
	}
	return dir
}
