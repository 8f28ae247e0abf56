package metrics

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/entrain-network/entrain/runlog"
)

// JSONLines is a sink that writes metrics.jsonl: one object for each step and each evaluation, with
// the names of [Scalar] beside "step" and "time". It leaves out numbers that JSON does not have
// (NaN, infinities).
type JSONLines struct {
	file  *os.File
	out   *bufio.Writer
	meter Meter
	line  []byte
}

// NewJSONLines appends to a file, which it creates if needed. It cuts off an incomplete last line,
// as a crash leaves it.
func NewJSONLines(path string) (*JSONLines, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if err := cutLine(f); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: %w", err), f.Close())
	}
	return &JSONLines{file: f, out: bufio.NewWriter(f)}, nil
}

// cutLine cuts a file after its last newline, and goes there.
func cutLine(f *os.File) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	block := make([]byte, 4096)
	for end > 0 {
		n := min(end, int64(len(block)))
		if _, err := f.ReadAt(block[:n], end-n); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			end += int64(i+1) - n
			break
		}
		end -= n
	}
	if err := f.Truncate(end); err != nil {
		return err
	}
	_, err = f.Seek(end, io.SeekStart)
	return err
}

// Record implements runlog.Sink.
func (j *JSONLines) Record(r runlog.Record) error {
	s, ok := j.meter.Add(r)
	if !ok {
		return nil
	}
	j.line = append(j.line[:0], `{"step":`...)
	j.line = strconv.AppendUint(j.line, uint64(s.Step), 10)
	j.line = append(j.line, `,"time":`...)
	j.line = strconv.AppendQuote(j.line, s.Time.UTC().Format(time.RFC3339Nano))
	for _, v := range s.Values {
		if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
			continue
		}
		j.line = append(j.line, ',')
		j.line = strconv.AppendQuote(j.line, v.Name)
		j.line = append(j.line, ':')
		number, err := json.Marshal(v.Value)
		if err != nil {
			panic("runlog: a finite number has no JSON: " + err.Error())
		}
		j.line = append(j.line, number...)
	}
	j.line = append(j.line, "}\n"...)
	if _, err := j.out.Write(j.line); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// Flush implements runlog.Sink.
func (j *JSONLines) Flush() error {
	if err := j.out.Flush(); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// Close implements runlog.Sink.
func (j *JSONLines) Close() error { return errors.Join(j.Flush(), j.file.Close()) }
