//go:build !linux

package exact

func largePages[T any](s []T) {}
