package atomicfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var errWrite = errors.New("no more of it")

// entries are the names in dir.
func entries(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestWriteReplacesAFileWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	for _, text := range []string{"a longer first text", "second"} {
		if err := WriteBytes(path, 0o600, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("got %q, %v, want %q", got, err, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v", info.Mode(), err)
	}
	if got := entries(t, dir); got != "key" {
		t.Errorf("directory holds %q", got)
	}
}

func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	if err := WriteBytes(path, 0o644, []byte("old")); err != nil {
		t.Fatal(err)
	}
	err := Write(path, 0o644, func(w io.Writer) error {
		w.Write(make([]byte, 3*bufferBytes))
		return errWrite
	})
	if !errors.Is(err, errWrite) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("got %q, %v", got, err)
	}
	if got := entries(t, dir); got != "state" {
		t.Errorf("directory holds %q", got)
	}
	if err := WriteBytes(filepath.Join(dir, "none", "file"), 0o644, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: got %v", err)
	}
}

// write returns a function that creates the named files, each holding its name, and then fails with err.
func write(err error, names ...string) func(Create) error {
	return func(create Create) error {
		for _, name := range names {
			w, err := create(name)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(w, name); err != nil {
				return err
			}
			if err := w.Close(); err != nil {
				return err
			}
		}
		return err
	}
}

func TestWriteDirMakesAllFilesOrNone(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "a", "checkpoint-1")
	if err := WriteDir(t.Context(), dir, write(errWrite, "x", "y")); !errors.Is(err, errWrite) {
		t.Errorf("got %v", err)
	}
	if got := entries(t, filepath.Dir(dir)); got != "" {
		t.Errorf("after a failure the parent holds %q", got)
	}
	if err := WriteDir(t.Context(), dir, write(nil, "x", "y")); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, filepath.Dir(dir)); got != "checkpoint-1" {
		t.Errorf("the parent holds %q", got)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "y")); err != nil || string(got) != "y" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := WriteDir(t.Context(), dir, write(nil, "z")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("existing directory: got %v", err)
	}
	if got := entries(t, dir); got != "x y" {
		t.Errorf("the finished directory holds %q", got)
	}
}

func TestWriteDirStopsWithItsContext(t *testing.T) {
	root := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	err := WriteDir(ctx, filepath.Join(root, "dir"), func(create Create) error {
		w, err := create("large")
		if err != nil {
			return err
		}
		defer w.Close()
		cancel()
		_, err = w.Write([]byte("more"))
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	err = WriteDir(ctx, filepath.Join(root, "dir"), func(create Create) error {
		defer cancel()
		return write(nil, "x")(create)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before the rename: got %v", err)
	}
	if got := entries(t, root); got != "" {
		t.Errorf("the parent holds %q", got)
	}
}

func TestNamesOutsideTheDirectoryAreRefused(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"", ".", "..", "../x", "a/b", `a\b`, "c:x", TempPrefix + "x"} {
		if err := WriteDir(t.Context(), filepath.Join(root, "dir"), write(nil, name)); err == nil {
			t.Errorf("%q was created", name)
		}
	}
	if err := WriteDir(t.Context(), filepath.Join(root, "dir"), write(nil, "x", "x")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file created twice: got %v", err)
	}
	if got := entries(t, root); got != "" {
		t.Errorf("the parent holds %q", got)
	}
}

func TestRemoveTempsDeletesOnlyOldTemporaryEntries(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"kept", TempPrefix + "old", TempPrefix + "new"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{"kept", TempPrefix + "old"} {
		if err := os.Chtimes(filepath.Join(dir, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveTemps(dir, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got, want := entries(t, dir), TempPrefix+"new kept"; got != want {
		t.Errorf("directory holds %q, want %q", got, want)
	}
	// A directory in which a file is being written is as new as the file.
	for name, at := range map[string]time.Time{TempPrefix + "idle": past, TempPrefix + "busy": time.Now()} {
		file := filepath.Join(dir, name, "large")
		if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600), os.Chtimes(file, at, at), os.Chtimes(filepath.Dir(file), past, past)); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveTemps(dir, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got, want := entries(t, dir), TempPrefix+"busy "+TempPrefix+"new kept"; got != want {
		t.Errorf("directory holds %q, want %q", got, want)
	}
	if err := RemoveTemps(filepath.Join(dir, "none"), 0); err != nil {
		t.Errorf("missing directory: %v", err)
	}
}

func TestMkdirAllMakesParents(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Errorf("%v, %v", info, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := MkdirAll(filepath.Join(file, "d"), 0o700); err == nil {
		t.Error("a directory is made below a file")
	}
}

// An error names what the caller asked for: the temporary name says nothing to anybody.
func TestErrorsDoNotNameTemporaryEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "key")
	err := WriteBytes(path, 0o600, nil)
	if !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), TempPrefix) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	dir := t.TempDir()
	err = Write(dir, 0o600, func(io.Writer) error { return nil })
	if err == nil || strings.Contains(err.Error(), TempPrefix) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a directory is in the way: got %v", err)
	}
}
