//go:build amd64 && !linux

package exact8

func amxAllowed() bool { return false }
