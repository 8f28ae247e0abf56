// Package opticks holds Newton's Opticks, the text that demos and studies train on.
package opticks

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

//go:embed testdata/Isaac.Newton-Opticks.txt.gz
var packed []byte

// Write writes the text to a directory, and returns the file's path.
func Write(dir string) (path string, err error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", fmt.Errorf("the text: %w", err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return "", fmt.Errorf("the text: %w", err)
	}
	path = filepath.Join(dir, "Isaac.Newton-Opticks.txt") // which names the data set, too
	return path, os.WriteFile(path, text, 0o600)
}
