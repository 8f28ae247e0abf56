package runlog

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Reader reads the records of one file, one after the other.
type Reader struct {
	in     *bufio.Reader
	name   string
	offset int64
	codec  codec
	frame  [frameBytes]byte
	body   []byte
	err    error
}

// newReader reads a log's file from its beginning. The name is for errors.
func newReader(in io.Reader, name string) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, 64<<10), name: name}
}

// Next returns the next record. It returns io.EOF after the last one, ErrTorn if the file ends in
// the middle of one, and a *FormatError for anything that is not a record. An error stays.
func (r *Reader) Next() (Record, error) {
	if r.err != nil {
		return Record{}, r.err
	}
	rec, err := r.next()
	r.err = err
	return rec, err
}

// Offset returns the bytes that the header and whole records have taken.
func (r *Reader) Offset() int64 { return r.offset }

func (r *Reader) next() (Record, error) {
	if r.offset == 0 {
		if err := r.fill(r.frame[:]); err != nil {
			return Record{}, err
		}
		if string(r.frame[:]) != fileMagic {
			return Record{}, r.format(wrongMagic(r.frame[:]))
		}
		r.offset = int64(len(fileMagic))
	}
	if err := r.fill(r.frame[:]); err != nil {
		return Record{}, err
	}
	n := binary.LittleEndian.Uint32(r.frame[:])
	if n == 0 || n > recordBytesMax {
		return Record{}, r.format(fmt.Sprintf("a record of %d bytes; 1 to %d are possible", n, recordBytesMax))
	}
	if uint32(cap(r.body)) < n {
		r.body = make([]byte, n)
	}
	r.body = r.body[:n]
	if err := r.fill(r.body); err != nil {
		if err == io.EOF {
			err = ErrTorn
		}
		return Record{}, err
	}
	if checksum(r.frame[:4], r.body) != binary.LittleEndian.Uint32(r.frame[4:]) {
		return Record{}, r.format("the checksum of a record is wrong")
	}
	rec, err := r.codec.parse(r.body)
	if err != nil {
		return Record{}, r.format("a record is " + err.Error())
	}
	r.offset += frameBytes + int64(n)
	return rec, nil
}

// wrongMagic says why a file that begins with these bytes is refused.
func wrongMagic(b []byte) string {
	if string(b[:4]) != fileMagic[:4] {
		return "the file does not begin as a log does"
	}
	return fmt.Sprintf("the log has version %d, this program reads version %d: read it with the release that wrote it, "+
		"or use metrics.jsonl and tensorboard/ beside it", b[4], fileMagic[4])
}

// fill reads all of b: io.EOF if nothing is left, ErrTorn if less than that is.
func (r *Reader) fill(b []byte) error {
	_, err := io.ReadFull(r.in, b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTorn
	}
	return err
}

func (r *Reader) format(text string) error {
	return &FormatError{File: r.name, Offset: r.offset, Text: text}
}

// Log reads a log's records, in all its files, in order.
type Log struct {
	dir    string // "" for a single file
	now    segment
	file   *os.File // nil before the first and between two
	reader *Reader
	torn   bool
	before int64 // bytes of the files that were read
	all    int64 // bytes of all files, when this one was opened
}

// Open opens a log's directory, or one file of it. There may be no record yet.
func Open(path string) (*Log, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	if info.IsDir() {
		return &Log{dir: path}, nil
	}
	l := &Log{now: segment{path: path}}
	return l, l.open(l.now)
}

func (l *Log) open(s segment) error {
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	if l.file != nil {
		l.before += l.reader.Offset()
		l.file.Close() // was only read
	}
	l.all = l.before
	if list, err := segments(l.dir); l.dir != "" && err == nil {
		for _, other := range list {
			if other.number >= s.number {
				l.all += other.bytes
			}
		}
	} else if info, err := f.Stat(); err == nil {
		l.all += info.Size()
	}
	l.file, l.now, l.reader = f, s, newReader(f, s.path)
	return nil
}

// Next returns the next record, or io.EOF. Called again after io.EOF, it returns what was written
// since, so it can follow a running participant. Torn reports whether the log ends in the middle of
// a record. Such an end of any file but the last is an error, as is anything that is not a record.
func (l *Log) Next() (Record, error) {
	for {
		if l.file == nil {
			if ok, err := l.advance(); !ok {
				return Record{}, err
			}
		}
		r, err := l.reader.Next()
		if err == nil {
			l.torn = false
			return r, nil
		}
		l.torn = errors.Is(err, ErrTorn)
		if !errors.Is(err, io.EOF) && !l.torn {
			return Record{}, err
		}
		// Only a newer file shows that this one is complete. Read what was added to this one first.
		newer, listErr := l.newer()
		if listErr != nil {
			return Record{}, listErr
		}
		grown, growErr := l.grown()
		switch {
		case growErr != nil:
			return Record{}, growErr
		case grown:
		case newer == nil:
			return Record{}, io.EOF
		case l.torn:
			return Record{}, &FormatError{File: l.now.path, Offset: l.reader.Offset(), Text: ErrTorn.Error() + ", but it goes on in another file"}
		default:
			if err := l.open(*newer); err != nil {
				return Record{}, err
			}
		}
	}
}

// Torn reports whether the log ended in the middle of a record when Next last returned io.EOF.
func (l *Log) Torn() bool { return l.torn }

// Progress returns the bytes that Next has read, and those that the log had when it opened the
// current file.
func (l *Log) Progress() (read, all int64) {
	if l.reader != nil {
		read = l.reader.Offset()
	}
	return l.before + read, max(l.all, l.before+read)
}

const (
	followEvery     = 250 * time.Millisecond // between looks for new records
	recordsPerWord  = 4096                   // between two reports of progress
	percentComplete = 100
)

// Follow calls f with the records that Next returns, and with those that a participant still
// writes, until ctx ends. It calls progress now and then with the percentage that was read, and
// with 100 whenever it has read all there is.
func (l *Log) Follow(ctx context.Context, f func(Record), progress func(percent int)) error {
	timer := time.NewTicker(followEvery)
	defer timer.Stop()
	for records := 1; ctx.Err() == nil; records++ {
		r, err := l.Next()
		switch {
		case err == nil:
			f(r)
			if read, all := l.Progress(); records%recordsPerWord == 0 && read < all {
				progress(int(percentComplete * read / all))
			}
		case errors.Is(err, io.EOF):
			progress(percentComplete)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		default:
			return err
		}
	}
	return nil
}

// Read calls f with all records of the log at path.
func Read(ctx context.Context, path string, f func(Record)) error {
	log, err := Open(path)
	if err != nil {
		return err
	}
	defer log.Close()
	for {
		r, err := log.Next()
		switch {
		case errors.Is(err, io.EOF):
			return ctx.Err()
		case err != nil || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		}
		f(r)
	}
}

// Close ends the reading.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// grown goes back to the end of the last whole record. It reports whether there is more than was
// read.
func (l *Log) grown() (bool, error) {
	info, err := l.file.Stat()
	if err != nil {
		return false, fmt.Errorf("log: %w", err)
	}
	offset := l.reader.Offset()
	if _, err := l.file.Seek(offset, io.SeekStart); err != nil {
		return false, fmt.Errorf("log: %w", err)
	}
	r := l.reader
	r.in.Reset(l.file)
	r.err = nil
	more := info.Size() > max(offset, l.now.bytes)
	l.now.bytes = info.Size()
	return more, nil
}

// newer returns the next file, nil if there is none.
func (l *Log) newer() (*segment, error) {
	if l.dir == "" {
		return nil, nil
	}
	list, err := segments(l.dir)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(s segment) bool { return s.number > l.now.number })
	if i < 0 {
		return nil, nil
	}
	return &list[i], nil
}

// advance opens the first file; false with io.EOF if there is none.
func (l *Log) advance() (bool, error) {
	s, err := l.newer()
	if err != nil {
		return false, err
	}
	if s == nil {
		return false, io.EOF
	}
	return true, l.open(*s)
}
