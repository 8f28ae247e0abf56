//go:build unix

package comet

import "syscall"

// descriptors returns how many files and connections this process may have open.
func descriptors() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return descriptorsUsual
	}
	return uint64(l.Cur)
}
