//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockFile opens the file at path for this process alone. The lock ends with the process, however it ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, os.NewSyscallError("flock", err)
	}
	return f, nil
}

// holdFile opens the file at path so that moveUnused leaves its directory alone until it is closed or the process ends. Many may hold it.
func holdFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	_ = unix.Flock(int(f.Fd()), unix.LOCK_SH) // it takes no longer than a rename; where a file system has no locks, nobody moves anything either
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

// moveUnused renames the directory from, unless somebody holds the file of that name in it: errLocked.
func moveUnused(from, to, file string) error {
	f, err := os.OpenFile(filepath.Join(from, file), os.O_RDWR, 0)
	if err == nil {
		defer f.Close()
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return errLocked
	case err != nil && !errors.Is(err, fs.ErrNotExist): // which nobody can hold
		return err
	}
	return os.Rename(from, to)
}
