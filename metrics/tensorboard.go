package metrics

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/entrain-network/entrain/runlog"
)

// TensorBoard is a sink that writes an event file for TensorBoard, with the names of [Scalar] as
// tags.
//
// The file is a sequence of TFRecords (tensorflow/core/lib/io/record_writer.h), each an Event
// (tensorboard/compat/proto/event.proto) as protocol buffers write it:
//
//	u64 length | u32 masked CRC-32C of the length | event | u32 masked CRC-32C of the event
//
//	Event    1 double wall_time | 2 int64 step | 3 string file_version | 5 Summary
//	Summary  1 Value, repeated
//	Value    1 string tag | 2 float simple_value
//
// A masked checksum is rotated right by 15 bits, plus 0xa282ead8.
type TensorBoard struct {
	file  *os.File
	out   *bufio.Writer
	meter Meter
	event []byte
}

// NewTensorBoard begins an event file in a directory, which it creates if needed. TensorBoard reads
// all event files of a directory as one run, so a participant that resumes writes to the same
// directory.
func NewTensorBoard(dir string, now time.Time) (*TensorBoard, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	// The name must contain "tfevents", and files are read in the order of their names.
	name := fmt.Sprintf("events.out.tfevents.%010d.%09d.entrain", now.Unix(), now.Nanosecond())
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	t := &TensorBoard{file: f, out: bufio.NewWriter(f)}
	event := protoDouble(nil, 1, seconds(now))
	event = protoBytes(event, 3, []byte("brain.Event:2"))
	return t, errors.Join(t.write(event), t.Flush())
}

// Record implements runlog.Sink.
func (t *TensorBoard) Record(r runlog.Record) error {
	s, ok := t.meter.Add(r)
	if !ok {
		return nil
	}
	var summary []byte
	for _, v := range s.Values {
		value := protoBytes(nil, 1, []byte(v.Name))
		value = binary.AppendUvarint(value, 2<<3|5)
		value = binary.LittleEndian.AppendUint32(value, math.Float32bits(float32(v.Value)))
		summary = protoBytes(summary, 1, value)
	}
	t.event = protoDouble(t.event[:0], 1, seconds(s.Time))
	t.event = binary.AppendUvarint(t.event, 2<<3)
	t.event = binary.AppendUvarint(t.event, uint64(s.Step))
	t.event = protoBytes(t.event, 5, summary)
	return t.write(t.event)
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func protoDouble(dst []byte, field uint64, v float64) []byte {
	dst = binary.AppendUvarint(dst, field<<3|1)
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

func protoBytes(dst []byte, field uint64, v []byte) []byte {
	dst = binary.AppendUvarint(dst, field<<3|2)
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	return append(dst, v...)
}

func (t *TensorBoard) write(event []byte) error {
	if _, err := t.out.Write(appendTFRecord(nil, event)); err != nil {
		return fmt.Errorf("tensorboard: %w", err)
	}
	return nil
}

func appendTFRecord(dst, data []byte) []byte {
	n := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	dst = append(dst, n...)
	dst = binary.LittleEndian.AppendUint32(dst, maskedCRC(n))
	dst = append(dst, data...)
	return binary.LittleEndian.AppendUint32(dst, maskedCRC(data))
}

func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (c>>15 | c<<17) + 0xa282ead8
}

// Flush implements runlog.Sink.
func (t *TensorBoard) Flush() error {
	if err := t.out.Flush(); err != nil {
		return fmt.Errorf("tensorboard: %w", err)
	}
	return nil
}

// Close implements runlog.Sink.
func (t *TensorBoard) Close() error { return errors.Join(t.Flush(), t.file.Close()) }
