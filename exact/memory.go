package exact

// Make returns make([]T, n), in large pages where the system has them: a step reads all of it,
// partly across rows, and with small pages spends a good part of its time on their addresses.
func Make[T any](n int) []T {
	s := make([]T, n)
	largePages(s)
	return s
}
