package dirlock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockFile opens the file at path for this process alone: it shares it with no other.
func lockFile(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// Hold opens the file at path so that MoveUnused leaves its directory alone until the file is
// closed or the process ends. Several processes may hold one file.
func Hold(path string) (*os.File, error) { return os.Open(path) }

// MoveUnused renames the directory from, unless a process holds the named file in it: then the
// error is ErrLocked. Windows does not rename a directory in which a file is open.
func MoveUnused(from, to, _ string) error {
	err := os.Rename(from, to)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return ErrLocked
	}
	return err
}
