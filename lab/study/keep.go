package study

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/wire"
)

// keeper keeps results in a file, one line of JSON each, so that a stopped measurement can
// continue. Results in the making have files beside it. Without a file it keeps nothing.
type keeper[T any] struct {
	file *os.File
	done map[wire.Hash]T
}

// kept is a line of the file.
type kept[T any] struct {
	ID     wire.Hash `json:"id"` // hash of everything that determines the result
	What   string    `json:"what"`
	Result T         `json:"result"`
}

// keptBytesMax bounds a line.
const keptBytesMax = 1 << 20

// openKeeper reads the results in a file and removes a truncated last line.
func openKeeper[T any](path string) (k *keeper[T], err error) {
	k = &keeper[T]{done: map[wire.Hash]T{}}
	if path == "" {
		return k, nil
	}
	if k.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", path, err), k.close())
			k = nil
		}
	}()
	whole := int64(0) // bytes of complete lines
	for lines := bufio.NewReaderSize(k.file, keptBytesMax); ; {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return k, err
		}
		var v kept[T]
		if err := json.Unmarshal(line, &v); err != nil {
			return k, fmt.Errorf("at byte %d is not a result: %w", whole, err)
		}
		k.done[v.ID] = v.Result
		whole += int64(len(line))
	}
	if err := k.file.Truncate(whole); err != nil {
		return k, err
	}
	_, err = k.file.Seek(whole, io.SeekStart)
	return k, err
}

func (k *keeper[T]) get(id wire.Hash) (T, bool) {
	v, ok := k.done[id]
	return v, ok
}

// put records a result, with a description for people.
func (k *keeper[T]) put(id wire.Hash, what string, result T) error {
	k.done[id] = result
	if k.file == nil {
		return nil
	}
	line, err := json.Marshal(kept[T]{id, what, result})
	if err != nil {
		return err
	}
	_, err = k.file.Write(append(line, '\n'))
	return err
}

func (k *keeper[T]) close() error {
	if k.file == nil {
		return nil
	}
	return k.file.Close()
}

// partPath returns the name of the file that keeps how far a result is.
func (k *keeper[T]) partPath(id wire.Hash) string {
	return fmt.Sprintf("%s.%.16s.part", k.file.Name(), id)
}

// part returns the state from which a result is to be continued, or nil.
func (k *keeper[T]) part(id wire.Hash, params, optimizer int) (*checkpoint.State, error) {
	if k.file == nil {
		return nil, nil
	}
	f, err := os.Open(k.partPath(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := checkpoint.ReadState(f, params, optimizer)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if s.Run != id {
		return nil, fmt.Errorf("%s: is of another run: remove it", f.Name())
	}
	return &s, nil
}

// putPart keeps the state from which a result is to be continued, in place of an earlier one.
func (k *keeper[T]) putPart(s checkpoint.State) error {
	if k.file == nil {
		return nil
	}
	return atomicfile.Write(k.partPath(s.Run), 0o600, func(w io.Writer) error { return checkpoint.WriteState(w, s) })
}

// dropPart removes what putPart keeps.
func (k *keeper[T]) dropPart(id wire.Hash) error {
	if k.file == nil {
		return nil
	}
	if err := os.Remove(k.partPath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
