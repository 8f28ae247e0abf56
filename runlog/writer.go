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

// Sink receives every record that is written, in order, from one goroutine. Standings are whole. A
// sink must neither keep nor change what a record points to. It must be quick: while it works, the
// queue fills, and what does not fit is dropped.
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
	Chain        string       // name of the chain, for standings
	Own          string       // the participant's key in hex, for standings
	Log          *slog.Logger // gets each fault once; nil discards them
}

// Writer writes a log and shows it to sinks. Make it with [Create].
type Writer struct {
	opts    Options
	dir     string
	log     *slog.Logger
	queue   chan Record
	done    chan struct{}
	dropped atomic.Uint64
	failed  []error // written by the goroutine, read after done

	closing sync.RWMutex // guards closed, so that nothing is sent to a closed queue
	closed  bool

	// The goroutine owns all below.
	file     *os.File
	size     int64 // bytes in the file
	older    []segment
	number   uint64
	codec    codec
	last     *Standing // the newest state, whole
	told     digest    // what readers of the log know of it
	heard    sums
	now      time.Time // time of the newest record
	who      string    // reported the newest state
	buffer   []byte    // records that the operating system does not have yet
	scratch  []byte
	reported uint64 // dropped records that the log mentions
	broken   bool   // the files failed; sinks continue
	silent   []bool // by sink: it failed and is skipped
}

// bufferBytes is the size of buffer at which it is written to the file even if more records wait.
const bufferBytes = 256 << 10

// Create begins to write the log in a directory, after the records that are there already. It cuts
// off an incomplete last record, as a crash leaves it. The caller makes sure that no other process
// writes there. Close must be called.
func Create(dir string, opts Options) (*Writer, error) {
	opts.SegmentBytes = cmp.Or(opts.SegmentBytes, segmentBytes)
	opts.TotalBytes = cmp.Or(opts.TotalBytes, totalBytes)
	opts.Queue = cmp.Or(opts.Queue, queueRecords)
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

// mend cuts a file after its last whole record, and returns its new length. It leaves other damage
// alone: readers report it.
func mend(s segment, log *slog.Logger) (int64, error) {
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("log: %w", err)
	}
	defer f.Close()
	r := newReader(f, s.path)
	for err == nil {
		_, err = r.Next()
	}
	switch {
	case errors.Is(err, ErrTorn):
		log.Warn("cut off the incomplete last record of the log", "file", s.path, "bytes", s.bytes-r.Offset())
		if err := f.Truncate(r.Offset()); err != nil {
			return 0, fmt.Errorf("log: %w", err)
		}
		return r.Offset(), nil
	case !errors.Is(err, io.EOF):
		log.Warn("the log is damaged or of another version; continuing in a new file", "error", err)
	}
	return s.bytes, nil
}

// Add takes a record. It never waits: if the queue is full the record is dropped and counted. After
// Close it does nothing.
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

// Event adds an event of the participant itself.
func (w *Writer) Event(now time.Time, ev event.Event) { w.Add(Record{Time: now, Event: ev}) }

// Dropped returns the number of dropped records.
func (w *Writer) Dropped() uint64 { return w.dropped.Load() }

// Close writes the records that wait, closes the sinks, and returns every error since Create.
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

// run is the goroutine. It writes until the queue is closed, and flushes whenever nothing waits.
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

// take writes a record, and the state that comes with an event.
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

// tellState writes what is new in the state.
func (w *Writer) tellState(whole bool) {
	if w.last == nil {
		return
	}
	if changed := w.told.news(w.last, whole); changed != nil {
		w.write(Record{Time: w.now, Who: w.who, Standing: changed})
	}
}

// tellHeard writes the sums that are due.
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

// judge skips a sink from its first error on, so that a full disk is reported once.
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

// write appends a record to the buffer.
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
			w.encode(Record{Time: r.Time, Who: r.Who, Standing: w.last}) // each file can be read alone
		} else if w.last != nil {
			r.Standing = w.last
		}
	}
	w.encode(r)
}

func (w *Writer) encode(r Record) {
	w.scratch = w.codec.append(w.scratch[:0], r)
	if len(w.scratch) > recordBytesMax {
		panic("runlog: a record is larger than a record can be")
	}
	w.buffer = appendFrame(w.buffer, w.scratch)
	if len(w.buffer) > bufferBytes {
		w.flush()
	}
}

// tellDropped notes in the log that records are missing.
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

// flush writes the buffer to the file, so that a crash of this process no longer loses it.
func (w *Writer) flush() {
	if len(w.buffer) > 0 && !w.broken {
		n, err := w.file.Write(w.buffer)
		w.size += int64(n)
		if err != nil {
			w.broken = true
			w.fail(fmt.Errorf("log: %w; the run continues without it", err))
		}
	}
	w.buffer = w.buffer[:0]
	for i, s := range w.opts.Sinks {
		if !w.silent[i] {
			w.judge(i, s.Flush())
		}
	}
}

// rotate begins the next file, and removes the oldest ones if all together are too large.
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

// segmentsMax bounds the files of a log. A participant begins one each time it starts.
const segmentsMax = 1000
