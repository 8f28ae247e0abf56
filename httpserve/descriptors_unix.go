//go:build unix

package httpserve

import "syscall"

// Descriptors returns how many files and connections this process may have open.
func Descriptors() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1024
	}
	return uint64(l.Cur)
}
