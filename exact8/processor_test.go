//go:build unix

package exact8

import (
	"syscall"
	"time"
)

func init() {
	spent = func() time.Duration {
		var u syscall.Rusage
		if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
			return time.Since(began)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
}
