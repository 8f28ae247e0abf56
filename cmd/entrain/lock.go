package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// errLocked says that another process holds a lock.
var errLocked = errors.New("in use by another process")

// lockDir makes the directory if need be and takes it for this process, until unlock is called or the process ends. What is a purpose
// for the error text, such as "state directory".
func lockDir(dir, what string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	f, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w; stop the other one, or choose another directory", what, dir, err)
	}
	return func() { f.Close() }, nil
}
