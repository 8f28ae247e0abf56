package runlog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/event"
)

// Sink is shown every record that is written, in order, by one goroutine. Standings are whole. It must not keep what a record points
// to, nor change it, and must not take long: what waits for it is dropped in the end.
type Sink interface {
	Record(r Record) error
	// Flush is called when nothing waits, and before Close.
	Flush() error
	Close() error
}

// Options of a [Writer]; zero means the default.
type Options struct {
	SegmentBytes int64
	TotalBytes   int64
	Queue        int
	Sinks        []Sink
	Chain        string       // what standings say of the chain and the participant
	Own          string       // key, hex
	Log          *slog.Logger // told once of each thing that fails; nil discards
}

// Writer writes a log and shows it to sinks. Make it with [Create].
type Writer struct {
	opts    Options
	dir     string
	log     *slog.Logger
	queue   chan Record
	done    chan struct{}
	dropped atomic.Uint64
	failed  []error // by the goroutine, read after done

	closing sync.RWMutex // guards closed against the queue's end
	closed  bool

	// What follows belongs to the goroutine.
	file     *os.File
	size     int64 // of the file
	older    []segment
	number   uint64
	codec    codec
	last     *Standing // the newest state, whole
	told     digest    // of it, what is written
	heard    sums
	now      time.Time // of the newest record
	who      string    // told of the newest state
	buffer   []byte    // records not yet handed to the operating system
	scratch  []byte
	reported uint64 // dropped records that the log told of
	broken   bool   // the files failed; sinks go on
	silent   []bool // by sink: it failed and is left out
}

// bufferBytes is after how many bytes records are written to the file even if more wait.
const bufferBytes = 256 << 10

// Create begins to write the log in a directory, after what is there already. It cuts off what a crash left of a record at its end.
// The caller makes sure that no other process writes there. Close must be called.
func Create(dir string, opts Options) (*Writer, error) {
	opts.SegmentBytes = cmp.Or(opts.SegmentBytes, SegmentBytes)
	opts.TotalBytes = cmp.Or(opts.TotalBytes, TotalBytes)
	opts.Queue = cmp.Or(opts.Queue, QueueRecords)
	w := &Writer{opts: opts, dir: dir, log: opts.Log, queue: make(chan Record, opts.Queue), done: make(chan struct{}), silent: make([]bool, len(opts.Sinks))}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	list, err := segments(dir)
	if err != nil {
		return nil, err
	}
	if n := len(list); n > 0 {
		last := &list[n-1]
		if last.bytes, err = mend(*last, w.log); err != nil {
			return nil, err
		}
		w.number = last.number
	}
	w.older = list
	if err := w.rotate(); err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

// mend cuts a file after its last whole record, and returns its length then. What is damaged otherwise is left alone: a reader will
// say so.
func mend(s segment, log *slog.Logger) (int64, error) {
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("log: %w", err)
	}
	defer f.Close()
	r := NewReader(f, s.path)
	for err == nil {
		_, err = r.Next()
	}
	switch {
	case errors.Is(err, ErrTorn):
		log.Warn("the log ended in the middle of a record, which is cut off", "file", s.path, "bytes", s.bytes-r.Offset())
		if err := f.Truncate(r.Offset()); err != nil {
			return 0, fmt.Errorf("log: %w", err)
		}
		return r.Offset(), nil
	case !errors.Is(err, io.EOF):
		log.Warn("the log is damaged; going on in a new file", "error", err)
	}
	return s.bytes, nil
}

// Add takes a record. It never waits: if too many wait already the record is dropped and counted. After Close it does nothing.
func (w *Writer) Add(r Record) {
	w.closing.RLock()
	defer w.closing.RUnlock()
	if w.closed {
		return
	}
	select {
	case w.queue <- r:
	default:
		w.dropped.Add(1)
	}
}

// Event takes a participant's own event of a moment.
func (w *Writer) Event(now time.Time, ev event.Event) { w.Add(Record{Time: now, Event: ev}) }

// Dropped is how many records were dropped because too many waited.
func (w *Writer) Dropped() uint64 { return w.dropped.Load() }

// Close writes what waits, closes the sinks, and returns what failed since Create.
func (w *Writer) Close() error {
	w.closing.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.closing.Unlock()
	<-w.done
	return errors.Join(w.failed...)
}

// run is the goroutine: it writes until the queue is closed, and hands over what it has whenever nothing waits.
func (w *Writer) run() {
	defer close(w.done)
	for r := range w.queue {
		w.take(r)
		if len(w.queue) == 0 {
			w.tellDropped(r.Time)
			w.flush()
		}
	}
	w.tellHeard(true)
	w.tellState(true)
	w.flush()
	for i, s := range w.opts.Sinks {
		w.judge(i, s.Close())
	}
	if w.file != nil {
		w.fail(w.file.Close())
	}
}

// take writes a record, and the state that an event tells of.
func (w *Writer) take(r Record) {
	if s, ok := r.Event.(event.State); ok && s.Snapshot != nil {
		full := digestAfter(*s.Snapshot, w.last)
		full.Chain, full.Own = w.opts.Chain, w.opts.Own
		w.put(Record{Time: r.Time, Who: r.Who, Event: r.Event})
		w.take(Record{Time: r.Time, Who: r.Who, Standing: full})
		return
	}
	w.now = r.Time
	if r.Standing != nil {
		w.last, w.who = r.Standing, r.Who
		w.show(r)
		w.tellState(false)
		return
	}
	if many := w.last != nil && len(w.last.Members) >= manyMembers; many && r.Who == "" && r.Event != nil {
		w.tellHeard(false)
		if w.heard.take(r.Time, r.Event) {
			w.show(r)
			return
		}
	}
	w.put(r)
}

// tellState writes what is new of the state.
func (w *Writer) tellState(whole bool) {
	if w.last == nil {
		return
	}
	if changed := w.told.news(w.last, whole); changed != nil {
		w.write(Record{Time: w.now, Who: w.who, Standing: changed})
	}
}

// tellHeard writes the sums of what was heard that are due.
func (w *Writer) tellHeard(all bool) {
	for {
		h := w.heard.due(w.now, all)
		if h == nil {
			return
		}
		w.write(Record{Time: w.now, Heard: h})
	}
}

// put shows a record to the sinks and writes it.
func (w *Writer) put(r Record) {
	w.show(r)
	w.write(r)
}

func (w *Writer) show(r Record) {
	for i, s := range w.opts.Sinks {
		if !w.silent[i] {
			w.judge(i, s.Record(r))
		}
	}
}

// judge leaves out a sink that failed: a full disk is not told a thousand times.
func (w *Writer) judge(i int, err error) {
	if err != nil && !w.silent[i] {
		w.silent[i] = true
		w.fail(err)
	}
}

func (w *Writer) fail(err error) {
	if err != nil {
		w.failed = append(w.failed, err)
		w.log.Error("recording the run", "error", err)
	}
}

// write encodes a record behind what waits to be handed over.
func (w *Writer) write(r Record) {
	if w.broken {
		return
	}
	if w.size+int64(len(w.buffer)) >= w.opts.SegmentBytes {
		w.flush()
		if err := w.rotate(); err != nil {
			w.broken = true
			w.fail(err)
			return
		}
		w.told = digest{known: w.last}
		if w.last != nil {
			w.told.rowsAt = w.last.Round
		}
		if w.last != nil && r.Standing == nil {
			w.encode(Record{Time: r.Time, Who: r.Who, Standing: w.last}) // so that the file can be read alone
		} else if w.last != nil {
			r.Standing = w.last
		}
	}
	w.encode(r)
}

func (w *Writer) encode(r Record) {
	w.scratch = w.codec.append(w.scratch[:0], r)
	if len(w.scratch) > RecordBytesMax {
		panic("runlog: a record is larger than a record can be")
	}
	w.buffer = appendFrame(w.buffer, w.scratch)
	if len(w.buffer) > bufferBytes {
		w.flush()
	}
}

// tellDropped says in the log that records are missing in it.
func (w *Writer) tellDropped(now time.Time) {
	n := w.dropped.Load()
	if n == w.reported {
		return
	}
	text := fmt.Sprintf("%d records were left out of the log: they came faster than they could be written", n-w.reported)
	w.reported = n
	w.log.Warn(text)
	w.put(Record{Time: now, Event: event.Note{Text: text}})
}

// flush hands what was written to the operating system, so that a crash of this process no longer loses it.
func (w *Writer) flush() {
	if len(w.buffer) > 0 && !w.broken {
		n, err := w.file.Write(w.buffer)
		w.size += int64(n)
		if err != nil {
			w.broken = true
			w.fail(fmt.Errorf("log: %w; the run goes on without it", err))
		}
	}
	w.buffer = w.buffer[:0]
	for i, s := range w.opts.Sinks {
		if !w.silent[i] {
			w.judge(i, s.Flush())
		}
	}
}

// rotate begins the next file, and removes the oldest ones if all are too large.
func (w *Writer) rotate() error {
	if w.file != nil {
		w.older = append(w.older, segment{path: w.file.Name(), number: w.number, bytes: w.size})
		if err := w.file.Close(); err != nil {
			return fmt.Errorf("log: %w", err)
		}
		w.file = nil
	}
	total := w.opts.SegmentBytes
	for _, s := range w.older {
		total += s.bytes
	}
	for len(w.older) > 0 && (total > w.opts.TotalBytes || len(w.older) >= segmentsMax) {
		if err := os.Remove(w.older[0].path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("log: %w", err)
		}
		total -= w.older[0].bytes
		w.older = w.older[1:]
	}
	w.number++
	f, err := os.OpenFile(filepath.Join(w.dir, segmentName(w.number)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	w.file, w.size, w.codec = f, 0, codec{}
	w.buffer = append(w.buffer[:0], fileMagic...)
	return nil
}

// segmentsMax bounds the files of a log: a participant that is restarted again and again begins one each time.
const segmentsMax = 1000
