// Package runlog records what happened in a run, as one participant saw it: the events of package
// event, and the coordinator's state in short whenever it changed. All windows, metrics and reports
// are made of this record.
//
// A [Writer] takes records without ever making a participant wait: they go through a bounded queue
// to one goroutine, which writes them to files and shows them to sinks ([Sink]), such as those of
// package metrics and a window. Records that do not fit into the queue are dropped and counted, and
// the log says how many. A [Log] reads the files back, even while a participant still writes them.
//
//	event.Event ─► Writer.Add ──► queue ──► goroutine ──┬──► files
//	                (never waits)                       └──► sinks
//
// # Files
//
// A log is a directory of files named 00000001.runlog and so on. When one is full the next begins,
// and when all together are too large the oldest is removed, so a log never outgrows
// [Options.TotalBytes]. Each file can be read without the others. A crash loses what the operating
// system did not have yet and may cut the last record short; the next Writer removes such a tail.
//
//	file      "ELOG" | u8 version = 2 | 3 zero bytes | record ...
//	record    u32 length of body | u32 CRC-32C of the length and the body | body
//	body      u8 type | time in µs since 1970 | who | event (type 1), standing (2) or heard (3)
//	struct    mask of the fields that follow | these fields, in the order of the mask
//
// An event, a standing, a heard and all that they contain are structs. The constant schema in
// encode.go lists the fields of each; bit i of a mask stands for field i. A field is left out if it
// is zero. A member is its index and the fields that differ from the record of that member before
// it in the file; a head likewise has the fields that differ from the head before it. A slice is
// its length and its elements.
//
// In a run of 256 members and more, what would be a record for each member and round is summed up
// or left for later, so that a round costs some kilobytes however many members there are.
//
// u32 is little endian. Other numbers are LEB128 in the fewest bytes, those with a sign have it in
// the lowest bit, and floats are their IEEE 754 bits. A hash or key is its bytes. A text is its
// length, doubled, and its bytes; an odd length marks a hexadecimal text, written as the bytes it
// stands for. Every record has one encoding, and a reader refuses any other. Records contain no
// secrets, only what peers and the chain are told anyway, and texts of errors.
package runlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

const (
	fileMagic  = "ELOG\x02\x00\x00\x00"
	fileSuffix = ".runlog"
	frameBytes = 8 // before a body
)

// ErrTorn reports a file that ends in the middle of a record, as a crash leaves it.
var ErrTorn = errors.New("the log ends in the middle of a record")

// FormatError reports bytes that are not those of a log.
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

// segments returns the files of a log in order, none if the directory does not exist.
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
	sort.Slice(list, func(i, j int) bool { return list[i].number < list[j].number })
	return list, nil
}

func segmentName(number uint64) string { return fmt.Sprintf("%08d%s", number, fileSuffix) }
