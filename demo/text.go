package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Opticks returns the path of Newton's Opticks, a text that comes with the Go installation.
func Opticks(ctx context.Context) (string, error) {
	const remedy = "give a text of your own with --text FILE, at least 100 kB of plain text"
	var root string
	if out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output(); err == nil {
		root = strings.TrimSpace(string(out))
	}
	if root == "" {
		return "", fmt.Errorf("no Go installation was found, which holds the default text, Newton's Opticks; %s", remedy)
	}
	path := filepath.Join(root, "src", "testdata", "Isaac.Newton-Opticks.txt")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("this Go installation lacks the default text, Newton's Opticks: %w; %s", err, remedy)
	}
	return path, nil
}
