package runlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func note(i int) Record {
	return Record{Time: time.UnixMicro(int64(i)).UTC(), Event: event.Note{Text: fmt.Sprintf("note %d", i)}}
}

// readAll reads a log to its end.
func readAll(t *testing.T, path string) []Record {
	t.Helper()
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return rest(t, l)
}

func rest(t *testing.T, l *Log) []Record {
	t.Helper()
	var list []Record
	for {
		r, err := l.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
}

func create(t *testing.T, dir string, opts Options) *Writer {
	t.Helper()
	w, err := Create(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func closed(t *testing.T, w *Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// snapshot is a run with members that have joined, at some height.
func snapshot(t *testing.T, members int, height uint64) ledger.Snapshot {
	t.Helper()
	s, err := coordinator.New(coordinator.Limits{Members: 16, Witnesses: 4}, coordinator.Config{
		Name: "r", MinMembers: 1, StartMembers: 1, WarmupMs: 1, RoundTrainMs: 1, RoundWitnessMs: 1, CooldownMs: 1, EpochMs: 1,
		TotalSteps: 10, BatchStart: 8, BatchEnd: 8, SequenceTokens: 16, ModelHash: wire.Hash{1}, SpecHash: wire.Hash{1}, Owner: key.Public{1},
	}, coordinator.Env{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range members {
		if err := s.Apply(coordinator.Env{Height: height, Sender: key.Public{byte(i + 1)}}, coordinator.Join{Speed: 5}); err != nil {
			t.Fatal(err)
		}
	}
	return ledger.Snapshot{Height: height, TimeMs: 10 * height, State: s}
}

func TestALogGoesOnAfterACrashAtAnyByte(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, Options{})
	want := []Record{note(1), note(2), note(3)}
	for _, r := range want {
		w.Add(r)
	}
	closed(t, w)
	path := filepath.Join(dir, segmentName(1))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	two := len(whole) - frameBytes - len(new(codec).append(nil, want[2]))
	for n := two; n < len(whole); n++ {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, segmentName(1)), whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		l, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := rest(t, l); len(got) != 2 || l.Torn() != (n > two) {
			t.Errorf("cut at %d: %d records, torn %v", n, len(got), l.Torn())
		}
		l.Close()
		w := create(t, dir, Options{})
		w.Add(note(4))
		closed(t, w)
		if got := readAll(t, dir); !reflect.DeepEqual(got, []Record{want[0], want[1], note(4)}) {
			t.Errorf("cut at %d: read %+v", n, got)
		}
	}
}

func TestDamageIsLeftAloneAndReported(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, Options{})
	w.Add(note(1))
	closed(t, w)
	path := filepath.Join(dir, segmentName(1))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	w = create(t, dir, Options{})
	w.Add(note(2))
	closed(t, w)
	if again, _ := os.ReadFile(path); !bytes.Equal(again, b) {
		t.Error("the damaged file was changed")
	}
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var format *FormatError
	if _, err := l.Next(); !errors.As(err, &format) || format.File != path || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("reading gave %v", err)
	}
	if got := readAll(t, filepath.Join(dir, segmentName(2))); len(got) != 1 {
		t.Errorf("the new file alone has %d records", len(got))
	}
}

// Files rotate, all together stay within their bound, and each can be read alone: it begins with the whole state.
func TestRotationIsBoundedAndFilesStandAlone(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, Options{SegmentBytes: 4000, TotalBytes: 20_000})
	const n = 2000 // with the states less than the queue holds
	for i := range n {
		if i%10 == 0 {
			s := snapshot(t, 1+i/200, uint64(i+1))
			w.Add(Record{Time: time.UnixMicro(int64(i)), Event: event.State{Step: coordinator.Step(uint32(i)), Snapshot: &s}})
		}
		w.Add(note(i))
	}
	closed(t, w)
	if w.Dropped() > 0 {
		t.Fatalf("%d records were dropped", w.Dropped())
	}
	list, err := segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for i, s := range list {
		total += s.bytes
		alone := readAll(t, s.path)
		if len(alone) == 0 || i+1 < len(list) && s.bytes > 5000 {
			t.Errorf("file %d has %d bytes and %d records", s.number, s.bytes, len(alone))
		}
		if first := alone[0].Standing; i+1 < len(list) && (first == nil || len(first.Members) < 5) {
			t.Errorf("file %d begins with %+v, not with the whole state", s.number, alone[0])
		}
	}
	if len(list) < 3 || list[0].number == 1 || total > 20_000 {
		t.Errorf("%d files of %d bytes, the first is %d", len(list), total, list[0].number)
	}
	all := readAll(t, dir)
	last := all[len(all)-1]
	if last.Event != event.Event(event.Note{Text: fmt.Sprintf("note %d", n-1)}) {
		t.Errorf("the last record is %+v", last)
	}
}

// Standings in the log are what changed; merged they are the whole.
func TestOnlyChangesOfTheStateAreWritten(t *testing.T) {
	dir := t.TempDir()
	w := create(t, dir, Options{})
	one, two := snapshot(t, 3, 1), snapshot(t, 4, 2)
	for _, s := range []ledger.Snapshot{one, one, two} {
		w.Event(time.UnixMicro(1), event.State{Snapshot: &s})
	}
	closed(t, w)
	var standings []*Standing
	for _, r := range readAll(t, dir) {
		if r.Standing != nil {
			standings = append(standings, r.Standing)
		}
	}
	if len(standings) != 2 || len(standings[0].Members) != 3 || len(standings[1].Members) != 1 || standings[1].Members[0].Index != 3 {
		t.Fatalf("%d standings: %+v", len(standings), standings)
	}
	if got, want := standings[1].Members[0], Digest(two).Members[3]; got != want {
		t.Errorf("the new member is %+v, want %+v", got, want)
	}
}

func TestALogCanBeFollowed(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var got int
	for round := range 3 { // each in a file of its own
		w := create(t, dir, Options{})
		for i := range 5 {
			w.Add(note(10*round + i))
		}
		closed(t, w)
		for _, r := range rest(t, l) {
			if want := fmt.Sprintf("note %d", 10*round+got%5); r.Event.(event.Note).Text != want {
				t.Errorf("got %q, want %q", r.Event.(event.Note).Text, want)
			}
			got++
		}
	}
	if got != 15 {
		t.Errorf("%d records", got)
	}
}

// stuck is a sink that hangs until it is let go.
type stuck struct {
	entered, let chan struct{}
	seen         int
	fail         error
}

func (s *stuck) Record(Record) error {
	if s.seen++; s.seen == 1 {
		close(s.entered)
		<-s.let
	}
	return s.fail
}
func (s *stuck) Flush() error { return nil }
func (s *stuck) Close() error { return nil }

// Whoever adds never waits; what was dropped is counted, and said in the log.
func TestAddNeverWaits(t *testing.T) {
	dir := t.TempDir()
	sink := &stuck{entered: make(chan struct{}), let: make(chan struct{})}
	w := create(t, dir, Options{Queue: 8, Sinks: []Sink{sink}})
	w.Add(note(0))
	<-sink.entered
	for i := range 20 {
		w.Add(note(i + 1))
	}
	if w.Dropped() != 12 {
		t.Errorf("%d dropped, want 12", w.Dropped())
	}
	close(sink.let)
	closed(t, w)
	w.Add(note(99)) // does nothing
	all := readAll(t, dir)
	if len(all) != 10 || !strings.Contains(all[9].Event.(event.Note).Text, "12 records were left out") {
		t.Errorf("%d records, the last %+v", len(all), all[len(all)-1].Event)
	}
}

// A sink that fails is told nothing more, and stops nothing.
func TestAFailedSinkIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	let := make(chan struct{})
	close(let)
	sink := &stuck{entered: make(chan struct{}), let: let, fail: errors.New("disk full")}
	w := create(t, dir, Options{Sinks: []Sink{sink}})
	for i := range 5 {
		w.Add(note(i))
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("closing gave %v", err)
	}
	if sink.seen != 1 || len(readAll(t, dir)) != 5 {
		t.Errorf("the sink saw %d records, the log has %d", sink.seen, len(readAll(t, dir)))
	}
}
