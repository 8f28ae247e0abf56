package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/key"
)

// errLocked says that another process holds a lock.
var errLocked = errors.New("in use by another process")

// ownState is the directory for what somebody with a key keeps of a run, locked: the one that was asked for, or one below the user's directory for data.
func (c console) ownState(kind, run, asked string, k key.Private) (dir string, unlock func(), err error) {
	if dir = asked; dir == "" {
		if c.places.data == "" {
			return "", nil, errors.New("this system names no directory for data; say where state shall be kept with --state DIR")
		}
		dir = filepath.Join(c.places.data, kind, run+"-"+k.Public().String()[:8])
	}
	unlock, err = lockDir(dir, "state directory")
	return dir, unlock, err
}

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
