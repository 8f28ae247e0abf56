package participant

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/validator"
)

// Scored is an evaluation as validators log it.
type Scored struct {
	Event string `json:"event"`
	validator.Scored
}

// ScoreLogName is the file of a validator's evaluations in its state directory. A file of more than
// scoreLogMost bytes is renamed to end in .1, in place of the one before.
const (
	ScoreLogName  = "scores.jsonl"
	scoreLogMost  = 64 << 20
	scoreLineMost = 1 << 20 // bytes of a line: thousands of tensors
)

// scoreLog writes evaluations to a file, one a line.
type scoreLog struct {
	path string
	file *os.File
	size int64
}

func openScoreLog(dir string) (*scoreLog, error) {
	l := &scoreLog{path: filepath.Join(dir, ScoreLogName)}
	return l, l.open()
}

func (l *scoreLog) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log of scores: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("log of scores: %w", err), f.Close())
	}
	l.file, l.size = f, info.Size()
	return nil
}

func (l *scoreLog) add(line any) error {
	b, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("log of scores: %w", err)
	}
	if l.size > scoreLogMost {
		if err := errors.Join(l.file.Close(), os.Rename(l.path, l.path+".1"), l.open()); err != nil {
			return err
		}
	}
	n, err := l.file.Write(append(b, '\n'))
	l.size += int64(n)
	if err != nil {
		return fmt.Errorf("log of scores: %w", err)
	}
	return nil
}

func (l *scoreLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// ReadScoreLog returns a validator's evaluations of a member in the windows from first to last, in
// their order. Dir is the validator's state directory.
func ReadScoreLog(dir string, member key.Public, first, last uint32) ([]validator.Scored, error) {
	var list []validator.Scored
	for _, name := range []string{ScoreLogName + ".1", ScoreLogName} {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) && name != ScoreLogName {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("log of scores: %w; want the state directory of entrain validate", err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, scoreLineMost)
		for lines.Scan() {
			var line Scored
			if json.Unmarshal(lines.Bytes(), &line) != nil {
				continue // a crash cut the line off
			}
			if line.Key == member && line.Window >= coordinator.Round(first) && line.Window <= coordinator.Round(last) {
				list = append(list, line.Scored)
			}
		}
		if err := errors.Join(lines.Err(), f.Close()); err != nil {
			return nil, fmt.Errorf("log of scores: %w", err)
		}
	}
	return list, nil
}
