//go:build !linux

package ramdisk

func inMemory() string { return "" }
