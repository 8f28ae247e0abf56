package dirlock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The advice fits the cause: only where another process holds the lock is there one to stop.
func TestTheAdviceFitsTheCause(t *testing.T) {
	dir := t.TempDir()
	unlock, err := Lock(dir, "state directory")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir, "state directory"); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "stop the other one") {
		t.Errorf("in use: %v", err)
	}
	unlock()
	broken := t.TempDir()
	if err := os.Mkdir(filepath.Join(broken, "lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(broken, "state directory"); err == nil || errors.Is(err, ErrLocked) || strings.Contains(err.Error(), "stop") {
		t.Errorf("cannot be written: %v", err)
	}
}
