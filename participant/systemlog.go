package participant

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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

// Logging is the value of a flag: the least level of the structured log, and whether it is JSON.
type Logging struct {
	Level slog.Level
	JSON  bool
}

// Set is part of a flag's value.
func (l *Logging) Set(s string) error {
	level, format, _ := strings.Cut(s, ",")
	if err := l.Level.UnmarshalText([]byte(level)); err != nil || format != "" && format != "json" {
		return errors.New(`want debug, info, warn or error, and ",json" for lines of JSON`)
	}
	l.JSON = format != ""
	return nil
}

// String is part of a flag's value.
func (l *Logging) String() string {
	text := strings.ToLower(l.Level.String())
	if l.JSON {
		text += ",json"
	}
	return text
}

// Type is part of a flag's value.
func (l *Logging) Type() string { return "level" }

// Logger makes the structured log.
func (l *Logging) Logger(out io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: l.Level}
	if l.JSON {
		return slog.New(slog.NewJSONHandler(out, opts))
	}
	return slog.New(slog.NewTextHandler(out, opts))
}
