// Package atomicfile writes files and directories that are either complete or absent.
//
// Everything that entrain keeps (keys, data shards, checkpoints, a participant's state) is
// written under a temporary name in the same directory, synced to disk, and renamed; then the
// directory is synced. A crash, a full disk or a canceled context leaves the old contents, or
// nothing, under the final name. What may remain is a temporary entry, whose name begins with
// TempPrefix and which RemoveTemps deletes.
package atomicfile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// TempPrefix begins the name of every unfinished entry.
const TempPrefix = ".entrain-tmp-"

// bufferBytes is the size of the buffer between a writer and the disk.
const bufferBytes = 256 << 10

// Write writes the file at path through write, with the permissions of mode. If write or the disk
// fails, path is unchanged.
func Write(path string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := Begin(filepath.Dir(path))
	if err != nil {
		return failed("write", path, err)
	}
	w := bufio.NewWriterSize(f, bufferBytes)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if err != nil {
		Discard(f) // the first error is the one to report
		return failed("write", path, err)
	}
	return Commit(f, path, mode)
}

// Begin begins a file in dir that is written in any order, and ends with Commit or Discard.
func Begin(dir string) (*os.File, error) { return os.CreateTemp(dir, TempPrefix+"*") }

// Commit makes f the file at path, in the directory of its Begin, with the permissions of mode. If
// the disk fails, path is unchanged, and f is discarded.
func Commit(f *os.File, path string, mode fs.FileMode) error {
	err := f.Chmod(mode)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		Discard(f)
		return failed("write", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// Discard deletes f.
func Discard(f *os.File) {
	f.Close()
	os.Remove(f.Name()) // RemoveTemps deletes it otherwise
}

// failed names what the caller asked for, in place of the temporary entry that the system names.
func failed(what, path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) && strings.Contains(at.Path, TempPrefix) {
		err = at.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		err = link.Err
	}
	return fmt.Errorf("%s %q: %w", what, path, err)
}

// WriteBytes is Write for bytes in memory.
func WriteBytes(path string, mode fs.FileMode, b []byte) error {
	return Write(path, mode, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// MkdirAll is [os.MkdirAll], but every directory that it makes is durable when it returns.
func MkdirAll(path string, mode fs.FileMode) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := MkdirAll(parent, mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(parent)
}

// Create opens a file of a directory that is being written. The file is complete and synced when
// Close returns nil.
type Create func(name string) (io.WriteCloser, error)

// WriteDir makes the directory dir with the files that write creates. It makes missing parents
// too. If write or the disk fails, or ctx ends before the last step, there is no dir. If dir
// exists, the error wraps fs.ErrExist: a finished directory never changes, so every reader sees
// the same version.
//
// Names are plain file names, without directories. The files are readable by everyone, as far as
// the umask allows.
func WriteDir(ctx context.Context, dir string, write func(Create) error) error {
	dir = filepath.Clean(dir)
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("write directory %q: %w", dir, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write directory %q: %w", dir, err)
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("write directory %q: %w", dir, err)
	}
	temp, err := os.MkdirTemp(parent, TempPrefix+"*")
	if err != nil {
		return failed("write directory", dir, err)
	}
	if err := fillDir(ctx, temp, dir, write); err != nil {
		os.RemoveAll(temp) // the first error is the one to report
		return failed("write directory", dir, err)
	}
	return SyncDir(parent)
}

// fillDir writes the files of temp and renames it to dir.
func fillDir(ctx context.Context, temp, dir string, write func(Create) error) error {
	create := func(name string) (io.WriteCloser, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !plain(name) {
			return nil, fmt.Errorf("%q is not the name of a plain file", name)
		}
		f, err := os.OpenFile(filepath.Join(temp, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return nil, err
		}
		return &file{ctx.Err, f, bufio.NewWriterSize(f, bufferBytes)}, nil
	}
	if err := write(create); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return finish(temp, dir)
}

// finish renames temp, whose files are complete and synced, to dir.
func finish(temp, dir string) error {
	if err := os.Chmod(temp, 0o755); err != nil { // MkdirTemp made it for its owner alone
		return err
	}
	if err := SyncDir(temp); err != nil {
		return err
	}
	return os.Rename(temp, dir)
}

// MoveDir makes temp, a directory of complete and synced files on the same file system, the
// directory dir, as if WriteDir had written it. If dir exists, the error wraps fs.ErrExist.
func MoveDir(temp, dir string) error {
	dir = filepath.Clean(dir)
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("write directory %q: %w", dir, fs.ErrExist)
	}
	if err := finish(temp, dir); err != nil {
		return failed("write directory", dir, err)
	}
	return SyncDir(filepath.Dir(dir))
}

// plain reports whether name is a file name without a directory, on every system.
func plain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, `/\:`) && !strings.HasPrefix(name, TempPrefix)
}

// file is an open file of a directory that is being written.
type file struct {
	stop func() error // returns an error once writing should end: a large file must not delay that
	f    *os.File
	w    *bufio.Writer
}

func (f *file) Write(p []byte) (int, error) {
	if err := f.stop(); err != nil {
		return 0, err
	}
	return f.w.Write(p)
}

func (f *file) Close() error {
	err := f.w.Flush()
	if err == nil {
		err = f.f.Sync()
	}
	if closing := f.f.Close(); err == nil {
		err = closing
	}
	return err
}

// RemoveTemps deletes what interrupted writes left in dir: entries that begin with TempPrefix and
// were not written to for age. That spares entries that another process is writing. A missing dir
// has none.
func RemoveTemps(dir string, age time.Duration) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove temporary files: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), TempPrefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if at, err := written(path); err != nil || time.Since(at) < age {
			continue // gone meanwhile, or in use
		}
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(errs...)
}

// written returns when an entry, or a file in it, was last written. A directory's own time only
// changes when a file is created.
func written(path string) (last time.Time, err error) {
	err = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return err
	})
	return last, err
}
