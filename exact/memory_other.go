//go:build !linux || sbf

package exact

func largePages[T any](s []T) {}
