// Package dirlock keeps processes from using one directory at a time. A lock ends with its process,
// however that ends.
package dirlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrLocked reports that another process holds a lock.
var ErrLocked = errors.New("in use by another process")

// Lock makes the directory if necessary and locks it for this process, until unlock is called or
// the process ends. what names the directory in errors, such as "state directory".
func Lock(dir, what string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	f, err := lockFile(filepath.Join(dir, "lock"))
	if errors.Is(err, ErrLocked) {
		return nil, fmt.Errorf("%s %q: %w; stop the other one, or choose another directory", what, dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w; it must be on a disk that can be written to, and yours", what, dir, err)
	}
	return func() { f.Close() }, nil
}
