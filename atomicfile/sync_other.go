//go:build !unix

package atomicfile

// syncDir does nothing where directories cannot be synced; NTFS journals renames by itself.
func syncDir(string) error { return nil }
