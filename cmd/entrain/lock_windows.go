package main

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile opens the file at path for this process alone: it is shared with nobody. The lock ends with the process, however it ends.
func lockFile(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return nil, errLocked
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// holdFile opens the file at path so that moveUnused leaves its directory alone until it is closed or the process ends. Many may hold it.
func holdFile(path string) (*os.File, error) { return os.Open(path) }

// moveUnused renames the directory from, unless somebody holds the file of that name in it: errLocked. A directory in which any file is open
// cannot be renamed.
func moveUnused(from, to, _ string) error {
	err := os.Rename(from, to)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return errLocked
	}
	return err
}
