package client

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time of the calling thread, which other processes do not change.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
