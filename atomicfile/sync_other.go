//go:build !unix

package atomicfile

// syncDir does nothing on systems that cannot sync directories; NTFS journals renames itself.
func syncDir(string) error { return nil }
