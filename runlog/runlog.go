// Package runlog is the record of what happened in a run, as one participant saw it: the events of package node, and the
// coordinator's state in short whenever it changed. All windows, metrics and reports are made of it.
//
// A [Writer] takes records from a participant without ever making it wait: they go through a bounded queue to one goroutine, which
// writes them to files and shows them to sinks ([Sink]: metrics.jsonl, TensorBoard, others). What does not fit into the queue is
// dropped, counted, and said so in the log itself. A [Log] reads the files back, of a run that is over or of one that goes on.
//
//	event.Event ─► Writer.Add ──► queue ──► goroutine ──┬──► files
//	                (never waits)                       └──► sinks: JSONLines, TensorBoard, ...
//
// # Files
//
// A log is a directory of files named 00000001.runlog and so on. When one is full the next is begun, and when all together are too
// large the oldest is removed, so a log never outgrows [Options.TotalBytes]. Each file can be read without the others. A crash loses
// what was not handed to the operating system yet, and at most the last record is cut short: the next Writer removes that tail.
//
//	file      "ELOG" | u8 version = 1 | 3 zero bytes | record ...
//	record    u32 length of body | u32 CRC-32C of the length and the body | body
//	body      u8 type | time in µs since 1970 | who | event, standing, trust, or heard
//	event     kind | mask of the fields that are not zero | those fields, in the order of the mask
//	standing  numbers and texts of the run | members that changed | rounds that changed
//	heard     numbers: sums of what came from others in a round
//	trust     a standing | numbers | accounts, checks, disputes and convictions that changed, and which are over
//	windows   a standing | numbers | commitments of rounds | what members' scores brought | validators | the period settled last
//	both      a standing | as trust | as windows
//
// In a run of many members (256 and more) what would be a record for each member and round is summed up or left for later, so that a
// round costs some kilobytes however many there are.
//
// u32 is little endian. Other numbers are LEB128 in the fewest bytes, floats their IEEE 754 bits; a text is its length, doubled, and
// its bytes, where a hexadecimal text is told by an odd length and written as the bytes it stands for; names (kinds of events, phases,
// statuses) are numbers of a list. Every record has one encoding: a reader refuses any other. Secrets have no place in a record: it
// holds what peers and the chain are told anyway, and texts of errors.
package runlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	fileMagic  = "ELOG\x01\x00\x00\x00"
	fileSuffix = ".runlog"
	frameBytes = 8 // before a body
)

// ErrTorn is what reading a file gives that ends in the middle of a record, as a crash leaves it.
var ErrTorn = errors.New("the log ends in the middle of a record")

// FormatError is what reading gives where the bytes are not those of a log.
type FormatError struct {
	File   string
	Offset int64
	Text   string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("log %q at byte %d: %s", e.File, e.Offset, e.Text)
}

func checksum(frame, body []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(frame, table), table, body)
}

// appendFrame appends a body with its length and checksum.
func appendFrame(dst, body []byte) []byte {
	n := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	dst = append(dst, n...)
	dst = binary.LittleEndian.AppendUint32(dst, checksum(n, body))
	return append(dst, body...)
}

// segment is one file of a log.
type segment struct {
	path   string
	number uint64
	bytes  int64
}

// segments lists the files of a log in order. A directory that does not exist has none.
func segments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	var list []segment
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), fileSuffix)
		number, err := strconv.ParseUint(base, 10, 64)
		if !ok || err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // removed meanwhile
		}
		list = append(list, segment{path: filepath.Join(dir, e.Name()), number: number, bytes: info.Size()})
	}
	slices.SortFunc(list, func(a, b segment) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	return list, nil
}

func segmentName(number uint64) string { return fmt.Sprintf("%08d%s", number, fileSuffix) }
