//go:build unix

package atomicfile

import (
	"fmt"
	"os"
)

// SyncDir makes a rename in dir durable. Without it a power cut may lose the new name, although
// the file's bytes are safe.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	err = d.Sync()
	if closing := d.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("sync directory %q: %w", dir, err)
	}
	return nil
}
