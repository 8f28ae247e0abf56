//go:build unix

package dirlock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockFile opens the file at path for this process alone.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, os.NewSyscallError("flock", err)
	}
	return f, nil
}

// Hold opens the file at path so that MoveUnused leaves its directory alone until the file is
// closed or the process ends. Several processes may hold one file.
func Hold(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	// A shared lock waits for a rename at most. On a file system without locks MoveUnused fails too.
	_ = unix.Flock(int(f.Fd()), unix.LOCK_SH)
	opened, err := f.Stat()
	there, fault := os.Stat(path)
	if err := errors.Join(err, fault); err != nil {
		f.Close()
		return nil, err
	}
	if !os.SameFile(opened, there) { // it was moved before it was locked
		f.Close()
		return nil, &os.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return f, nil
}

// MoveUnused renames the directory from, unless a process holds the named file in it: then the
// error is ErrLocked.
func MoveUnused(from, to, file string) error {
	f, err := os.OpenFile(filepath.Join(from, file), os.O_RDWR, 0)
	if err == nil {
		defer f.Close()
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrLocked
	case err != nil && !errors.Is(err, fs.ErrNotExist): // no process can hold a missing file
		return err
	}
	return os.Rename(from, to)
}
