//go:build !unix

package atomicfile

// SyncDir does nothing on systems that cannot sync directories; NTFS journals renames itself.
func SyncDir(string) error { return nil }
