package participant

import (
	"fmt"
	"os"
	"path/filepath"
)

// systemLogBytesMax is the size from which a new entrain.log replaces the old one.
const systemLogBytesMax = 8 << 20

// OpenSystemLog opens entrain.log in dir, the file that takes the structured log while a window has
// the terminal.
func OpenSystemLog(dir string) (*os.File, error) {
	path := filepath.Join(dir, "entrain.log")
	mode := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > systemLogBytesMax {
		mode |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, mode, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log file: %w", err)
	}
	return f, nil
}
