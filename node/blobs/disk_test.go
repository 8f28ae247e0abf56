package blobs

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// plain is an engine that only moves values.
type plain struct{ *cpu.Engine }

func (plain) Leaves(v engine.Vector) []wire.Hash {
	return merkle.BlobLeaves(tensor.Bytes(engine.Values(v)))
}

// files are files in memory. A write fails if full is set, and the end of a new file if unsafe is. A
// read says on slow, if that is set, that it has begun, and waits there.
type files struct {
	mu     sync.Mutex
	byRoot map[wire.Hash][]byte
	full   error
	unsafe error
	slow   chan struct{}
	writes int
}

func (f *files) SaveBlob(root wire.Hash, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full == nil {
		f.byRoot[root] = bytes.Clone(data)
		f.writes++
	}
	return f.full
}

func (f *files) NewBlob() NewFile { return &newFile{of: f} }

// newFile is a file that is being written.
type newFile struct {
	mem.File
	of        *files
	discarded bool
}

func (b *newFile) WriteAt(data []byte, at int64) (int, error) {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if b.of.full != nil {
		return 0, b.of.full
	}
	return b.File.WriteAt(data, at)
}

func (b *newFile) Commit(root wire.Hash) error {
	if b.of.unsafe != nil {
		return b.of.unsafe
	}
	return b.of.SaveBlob(root, b.Bytes())
}

func (b *newFile) Discard() { b.discarded = true }

func (f *files) ReadBlob(root wire.Hash, from int64, dst []byte) error {
	if f.slow != nil {
		f.slow <- struct{}{} // it reads
		<-f.slow             // it may go on
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := bytes.NewReader(f.byRoot[root]).ReadAt(dst, from)
	return err
}

func (f *files) DropBlob(root wire.Hash) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byRoot, root)
	return nil
}

func (f *files) Blobs() (list []wire.Hash, err error) {
	for root := range f.byRoot {
		list = append(list, root)
	}
	return list, nil
}

// bench is versions of one kind on a disk, all of them large.
type bench struct {
	Versions
	t     *testing.T
	files *files
	clock *loop.Virtual
	disk  *Disk
	store *Store
	told  []string
	want  map[wire.Hash]bool
	asked int // chunks in the last fetch
}

const benchLen = 3*merkle.ChunkBytes/4 - 5

func newBench(t *testing.T, before map[wire.Hash][]byte) *bench {
	b := &bench{t: t, files: &files{byRoot: before}, clock: loop.NewVirtual(time.Unix(0, 0)), store: New(), want: map[wire.Hash]bool{}}
	b.disk = NewDisk(b.files, b.clock, time.Second, 1, b.prune, func(s string) { b.told = append(b.told, s) })
	b.Versions = NewVersions(b.store, b.disk, plain{}, NewBuffers(), benchLen)
	return b
}

func (b *bench) prune() {
	b.Prune(func(_ int, v *Version) bool { return b.want[v.Root] })
	b.disk.Sweep(func(root wire.Hash) bool { return b.Find(root) != nil })
}

// make keeps a wanted version of one value.
func (b *bench) make(value float32) *Version {
	values := b.Buffer()
	for i := range engine.Values(values) {
		values.Host(i, i+1)[0] = value
	}
	v := b.Measured(values)
	b.want[v.Root] = true
	return b.Keep(v)
}

// settle has the disk do what it has to.
func (b *bench) settle() {
	for b.clock.Step() {
	}
}

// served reports whether a peer gets all of a version.
func (b *bench) served(v *Version) bool {
	for i, leaf := range v.Leaves {
		if c, ok := b.store.Chunk(v.Root, uint32(i)); !ok || merkle.Leaf(c) != leaf {
			return false
		}
	}
	return true
}

// What is not current leaves memory once it has a file, is served and read from there, and its file
// goes with it.
func TestALargeVersionLeavesMemory(t *testing.T) {
	b := newBench(t, map[wire.Hash][]byte{wire.Sum("left by a crash"): {1}})
	old, now := b.make(1), b.make(2)
	b.Current = now
	if old.Values == nil || !b.served(old) {
		t.Fatal("it left memory without a file")
	}
	b.settle()
	if old.Values != nil || now.Values == nil || b.files.writes != 2 {
		t.Fatalf("in memory %v and %v after %d writes", old.Values != nil, now.Values != nil, b.files.writes)
	}
	if !b.served(old) || !b.served(now) {
		t.Error("a version is not served")
	}
	values, own, err := b.Vector(old)
	if err != nil || own == nil || values.Host(benchLen-1, benchLen)[0] != 1 {
		t.Errorf("read back: %v", err)
	}
	if again := b.make(1); again.Values == nil || b.files.writes != 2 {
		t.Errorf("made again: %d writes", b.files.writes)
	}
	b.Current = b.Find(old.Root)
	b.disk.Pin(now.Root)
	delete(b.want, now.Root)
	b.prune()
	b.settle()
	if _, there := b.files.byRoot[now.Root]; !there || len(b.files.byRoot) != 2 || b.Find(now.Root) != nil {
		t.Errorf("%d files, want the current one's and the pinned one's", len(b.files.byRoot))
	}
	if b.disk.Pin(old.Root); b.served(now) {
		t.Error("a dropped version is served")
	}
	b.prune()
	if b.settle(); len(b.files.byRoot) != 1 {
		t.Errorf("%d files are left", len(b.files.byRoot))
	}
}

// What nobody needs any more when the disk comes to it is not written, and does not stay in memory
// for it. What comes from peers meanwhile is not lost with it.
func TestASlowDiskDoesNotFillTheMemory(t *testing.T) {
	b := newBench(t, map[wire.Hash][]byte{})
	first := b.make(1)
	b.Current = first
	for i := range 50 { // while the first one is written
		old := b.Current
		b.Current = b.make(float32(2 + i))
		delete(b.want, old.Root)
		b.prune()
	}
	a, data := b.arrive(40)
	held := 0
	for _, v := range b.Held {
		if v.Values != nil {
			held++
		}
	}
	if held != 2 || first.Values == nil {
		t.Errorf("%d versions are in memory, want the one that is written and the current one", held)
	}
	if v := b.fetch(a, data, benchChunks); v == nil || !b.served(v) {
		t.Error("what came from peers is not there")
	}
	if b.settle(); b.files.writes != 3 || first.Values != nil || len(b.disk.known) != 3 {
		t.Errorf("%d versions were written, and %d have files", b.files.writes, len(b.disk.known))
	}
}

// A file that is not as it was written is neither served nor computed with.
func TestADamagedFileIsNotRead(t *testing.T) {
	b := newBench(t, map[wire.Hash][]byte{})
	old := b.make(1)
	b.Current = b.make(2)
	b.settle()
	b.files.byRoot[old.Root][merkle.ChunkBytes] ^= 1
	if _, ok := b.store.Chunk(old.Root, 1); ok || b.served(old) {
		t.Error("a damaged chunk is served")
	}
	if _, ok := b.store.Chunk(old.Root, 0); !ok {
		t.Error("a chunk that is not damaged is not served")
	}
	if _, _, err := b.Vector(old); !errors.Is(err, ErrDamaged) {
		t.Errorf("reading it: %v", err)
	}
	if b.Filed(old.Root) != nil || b.Filed(b.Current.Root) == nil {
		t.Error("a damaged version is taken, or one that is not damaged is not")
	}
	// After a crash nobody knows which files are damaged: what is kept again is written again.
	after := newBench(t, b.files.byRoot)
	if _, err := after.Recall(after.files, old.Root, false); !errors.Is(err, ErrDamaged) {
		t.Errorf("reading it after a crash: %v", err)
	}
	after.make(1)
	after.settle()
	if _, err := after.Recall(after.files, old.Root, false); err != nil {
		t.Errorf("written again: %v", err)
	}
}

// On a full disk all stays in memory, which is told once, until there is room.
func TestAFullDiskLeavesVersionsInMemory(t *testing.T) {
	b := newBench(t, map[wire.Hash][]byte{})
	b.files.full = errors.New("no room")
	old := b.make(1)
	b.Current = b.make(2)
	b.settle()
	a, data := b.arrive(3)
	taken := b.fetch(a, data, benchChunks)
	b.settle()
	if old.Values == nil || taken == nil || taken.Values == nil || !b.served(old) || !b.served(taken) || len(b.told) != 1 {
		t.Fatalf("old %v, taken %v, told %q", old.Values, taken, b.told)
	}
	b.files.full = nil
	b.disk.File(old, func(err error) {
		if err != nil {
			t.Error(err)
		}
	})
	b.settle()
	if b.prune(); old.Values != nil || !b.served(old) {
		t.Error("it stays in memory though there is room")
	}
}

const benchChunks = 3

// arrive begins the arrival of a wanted version of one value, and returns its bytes.
func (b *bench) arrive(value float32) (*Arrival, []byte) {
	values := make([]float32, benchLen)
	for i := range values {
		values[i] = value
	}
	data := tensor.Bytes(values)
	b.want[merkle.BlobRoot(data)] = true
	return b.Arrive(merkle.BlobRoot(data)), data
}

// fetch performs one fetch of an arrival, which ends after some chunks, and returns what settled.
func (b *bench) fetch(a *Arrival, data []byte, chunks int) (settled *Version) {
	b.t.Helper()
	from := key.Public{1}
	held := mem.NewStore(1 << 30)
	ref, err := held.Put(data)
	if err != nil {
		b.t.Fatal(err)
	}
	f := a.Fetch([]key.Public{from})
	d, err := p2p.NewDownload(f)
	if err != nil {
		b.t.Fatal(err)
	}
	b.asked = 0
	for !d.Done() {
		for _, r := range d.Next() {
			if r.Count == 0 {
				d.Leaves(r, merkle.BlobLeaves(data))
				continue
			}
			for i := r.From; i < r.From+r.Count && !d.Done(); i++ {
				if b.asked == chunks {
					d.Abort(p2p.ErrClosed)
					break
				}
				b.asked++
				chunk, _ := held.Chunk(ref.Root, i)
				c, err := r.Verify(i, chunk)
				if err != nil {
					b.t.Fatal(err)
				}
				d.Chunk(r, c)
			}
			d.End(r, nil)
		}
	}
	came, err := d.Result()
	if err != nil {
		a.Failed(err)
		return nil
	}
	if f.Into != nil && came != nil {
		b.t.Error("it came into memory")
	}
	a.Settle(a.Take(came), func(v *Version) { settled = v }, func() {})
	b.settle()
	return settled
}

// A large version comes to its file chunk by chunk, with several fetches, and is never in memory.
// Nothing is left of one that is given up.
func TestALargeVersionComesToItsFile(t *testing.T) {
	b := newBench(t, map[wire.Hash][]byte{})
	a, data := b.arrive(1)
	again, _ := b.arrive(1)
	if b.fetch(a, data, 2) != nil || b.asked != 2 {
		t.Fatalf("the first fetch brought %d chunks", b.asked)
	}
	v := b.fetch(a, data, benchChunks)
	if v == nil || b.asked != 1 || v.Values != nil || !b.served(v) || !bytes.Equal(b.files.byRoot[v.Root], data) {
		t.Fatalf("the second fetch brought %d chunks, and there is %v", b.asked, v)
	}
	if o := b.fetch(again, data, benchChunks); o != v || b.files.writes != 1 || !again.file.(*newFile).discarded {
		t.Errorf("coming twice it was written %d times", b.files.writes)
	}
	given, data := b.arrive(2)
	b.fetch(given, data, 2)
	given.Discard()
	if b.settle(); !given.file.(*newFile).discarded {
		t.Error("what was given up is left")
	}
}

// A disk that becomes full while a version comes costs none of what came, and the version is there.
func TestAVersionThatComesToAFullDisk(t *testing.T) {
	b := newBench(t, map[wire.Hash][]byte{})
	a, data := b.arrive(1)
	b.fetch(a, data, 2)
	b.files.full = errors.New("no room")
	if b.fetch(a, data, benchChunks) != nil || len(b.told) != 1 {
		t.Fatalf("told %q", b.told)
	}
	v := b.fetch(a, data, benchChunks)
	if v == nil || v.Values == nil || b.asked != 1 || !b.served(v) || !a.file.(*newFile).discarded {
		t.Fatalf("there is %v, after %d chunks", v, b.asked)
	}
}

// A file that cannot be made durable in the end costs another fetch, no more.
func TestAVersionWhoseFileIsNotDurable(t *testing.T) {
	b := newBench(t, map[wire.Hash][]byte{})
	a, data := b.arrive(1)
	b.files.unsafe = errors.New("no sync")
	if b.fetch(a, data, benchChunks) != nil || len(b.told) != 1 {
		t.Fatalf("told %q", b.told)
	}
	if v := b.fetch(a, data, benchChunks); v == nil || !b.served(v) {
		t.Fatalf("there is %v", v)
	}
}

// Peers that wait for a slow disk do not hold up what serves others.
func TestASlowDiskHoldsUpNobodyElse(t *testing.T) {
	b := newBench(t, map[wire.Hash][]byte{})
	old := b.make(1)
	b.Current = b.make(2)
	b.settle()
	b.files.slow = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		b.store.Chunk(old.Root, 0)
	}()
	<-b.files.slow
	b.store.PutPayload(1, []byte("a payload")) // waits for a lock that a reader holds
	if !b.served(b.Current) || ctx.Err() != nil {
		t.Error("others are not served meanwhile")
	}
	b.files.slow <- struct{}{}
	<-ctx.Done()
}
