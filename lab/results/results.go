// Package results keeps what long measurements found in a file, one line of JSON for each result,
// so that a measurement that was stopped can continue.
package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// File is an open file of results. The zero File keeps nothing.
type File[T any] struct{ file *os.File }

// Open opens a file of results, or makes it, and returns those in it. It removes a last line that
// is incomplete because a program was killed. An empty path is that of no file.
func Open[T any](path string) (f File[T], kept []T, err error) {
	if path == "" {
		return f, nil, nil
	}
	if f.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return f, nil, err
	}
	kept, whole, err := read[T](f.file)
	if err == nil {
		err = f.file.Truncate(whole)
	}
	if err == nil {
		_, err = f.file.Seek(whole, io.SeekStart)
	}
	if err != nil {
		return File[T]{}, nil, fmt.Errorf("%s: %w", path, errors.Join(err, f.Close()))
	}
	return f, kept, nil
}

// Read returns the results in a file.
func Read[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	kept, _, err := read[T](f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return kept, nil
}

// read returns the results, and the number of bytes of complete lines.
func read[T any](r io.Reader) (kept []T, whole int64, err error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, 0, err
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	for line := range bytes.Lines(b) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, 0, fmt.Errorf("line %d is not a result: %w", len(kept)+1, err)
		}
		kept = append(kept, v)
	}
	return kept, int64(len(b)), nil
}

// Add appends a result.
func (f File[T]) Add(v T) error {
	if f.file == nil {
		return nil
	}
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = f.file.Write(append(line, '\n'))
	return err
}

// Close closes the file.
func (f File[T]) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
