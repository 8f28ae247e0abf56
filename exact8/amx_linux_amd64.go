package exact8

import "golang.org/x/sys/unix"

// amxAllowed reports whether the system lets this process use the registers of AMX, which it must
// ask for, as their size makes the frames of its signals larger.
func amxAllowed() bool {
	const requestPermission, tileData = 0x1023, 18
	_, _, err := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return err == 0
}
