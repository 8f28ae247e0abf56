//go:build unix

package bench

import "syscall"

// processorSeconds returns the seconds of processors that this program has taken, or 0 if that is
// not known.
func processorSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
