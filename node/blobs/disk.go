package blobs

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/loop"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Files keep versions, by their roots, over crashes. SaveBlob must be durable when it returns.
// ReadBlob fills dst with the bytes from a place on, which may be damaged: who reads compares them
// with the root. Blobs lists those that are there. ReadBlob and NewBlob may be called beside the
// others.
type Files interface {
	SaveBlob(root wire.Hash, data []byte) error
	NewBlob() NewFile
	ReadBlob(root wire.Hash, from int64, dst []byte) error
	DropBlob(root wire.Hash) error
	Blobs() ([]wire.Hash, error)
}

// NewFile is a file that is written in any order, and becomes that of a version with Commit, which
// must be durable when it returns. It can be read until Commit or Discard.
type NewFile interface {
	p2p.File
	Commit(root wire.Hash) error
	Discard()
}

// FileFrom is the size in bytes from which on a version is in memory only while it is current or a
// job uses it. It is written to its file once, when it is made, and peers are served from there.
// Smaller ones are written when a crash must not lose them, and stay in memory.
const FileFrom = 64 << 20

// Disk writes versions to files and drops files, one after another, off the loop. Its methods are
// for the loop. A nil *Disk has no files.
type Disk struct {
	files Files
	loop  loop.Loop
	cost  time.Duration // of writing one
	from  int           // FileFrom, or another bound
	wrote func()        // is called after each write
	tell  func(string)  // takes what the user should know
	full  bool          // the last write or removal failed, which was told
	slow  bool          // more wait than slowFrom, which was told
	known map[wire.Hash]*file
	saved []wire.Hash // nil until Pin, when nothing is dropped
	tasks []task
	busy  bool
}

// file is the file of a version, which is there or being written.
type file struct {
	there   bool
	of      *Version // in memory; nil if it has come to a file
	before  bool     // this process did not write it: it may be damaged
	waiting []func(error)
}

// answer calls those that wait for it.
func (f *file) answer(failed error) {
	for _, done := range f.waiting {
		done(failed)
	}
	f.waiting = nil
}

// task is a write or a removal.
type task struct {
	cost  time.Duration
	begin func() bool // reports whether it is still of use; nil: it is
	work  func()
	done  func()
}

// NewDisk returns a disk for versions, which are large from a size on. It calls wrote after each
// write.
func NewDisk(f Files, l loop.Loop, cost time.Duration, from int, wrote func(), tell func(string)) *Disk {
	d := &Disk{files: f, loop: l, cost: cost, from: from, wrote: wrote, tell: tell, known: map[wire.Hash]*file{}}
	list, err := f.Blobs() // from before
	for _, root := range list {
		d.known[root] = &file{there: true, before: true}
	}
	d.told(err)
	return d
}

// told tells the user once that files cannot be written, as on a full disk. Versions stay in memory
// then.
func (d *Disk) told(failed error) {
	if failed != nil && !d.full {
		d.tell("state directory: " + failed.Error())
	}
	d.full = failed != nil
}

func (d *Disk) add(t task) {
	d.tasks = append(d.tasks, t)
	if n := d.writes(); n >= slowFrom && !d.slow {
		d.slow = true
		d.tell(fmt.Sprintf("state directory: the disk is too slow for this run: %d writes wait, and their data stays in memory; "+
			"name a directory on a faster disk with --state", n))
	}
	d.next()
}

// slowFrom is the number of writes that wait when a disk is slow. A round makes two versions.
const slowFrom = 16

// writes returns the number of writes that wait.
func (d *Disk) writes() (n int) {
	for _, t := range d.tasks {
		if t.begin != nil {
			n++
		}
	}
	return n
}

func (d *Disk) next() {
	if d.busy || len(d.tasks) == 0 {
		return
	}
	t := d.tasks[0]
	d.tasks = slices.Delete(d.tasks, 0, 1) // so that what it holds is free once it is done
	if t.begin != nil && !t.begin() {
		d.next()
		return
	}
	d.busy = true
	d.loop.Work(t.cost, t.work, func() {
		d.busy = false
		d.slow = d.slow && d.writes() > 0
		t.done()
		d.next()
	})
}

// errDropped is what a version was not written for that was let go of.
var errDropped = errors.New("the version is not needed any more")

// ErrNoFiles is what a version cannot be written for without a disk.
var ErrNoFiles = errors.New("there is no state directory")

// File has a version written unless its file is there, and then calls done, perhaps at once. A
// version that is let go of before its turn is not written: on a slow disk those that nobody needs
// any more would fill the memory.
func (d *Disk) File(v *Version, done func(error)) {
	if d == nil {
		done(ErrNoFiles)
		return
	}
	f := d.known[v.Root]
	if f != nil && f.there && (!f.before || v.Values == nil) {
		done(nil)
		return
	}
	f = d.write(v.Root, v, len(v.Leaves)*merkle.ChunkBytes, func(v *Version) error {
		return d.files.SaveBlob(v.Root, tensor.Bytes(engine.Values(v.Values)))
	}, done)
	if f.of != nil {
		f.of = v
	}
}

// write has work make the file of a version unless that is being written, and calls done. If it
// fails, a file that was there before still is. of is the version if it is in memory.
func (d *Disk) write(root wire.Hash, of *Version, size int, work func(*Version) error, done func(error)) *file {
	f := d.known[root]
	if old := f; f == nil || f.there {
		f = &file{of: of}
		d.known[root] = f
		lost := func() {
			delete(d.known, root)
			if old != nil {
				d.known[root] = old
			}
		}
		var v *Version
		var failed error
		d.add(task{d.cost, func() bool {
			if v = f.of; v == nil {
				return true
			}
			if v.Values == nil {
				lost()
				f.answer(errDropped)
				return false
			}
			v.Uses++
			return true
		}, func() { failed = work(v) }, func() {
			if v != nil {
				v.Uses--
			}
			if f.there = failed == nil; !f.there {
				lost()
			}
			f.answer(failed)
			d.told(failed)
			d.wrote()
			d.collect(size)
		}})
	}
	f.waiting = append(f.waiting, done)
	return f
}

// FileBoth has two versions written, the second unless it is nil, as File does.
func (d *Disk) FileBoth(a, b *Version, done func(error)) {
	d.File(a, func(failed error) {
		if failed != nil || b == nil {
			done(failed)
			return
		}
		d.File(b, done)
	})
}

// has reports whether the file of a version is there.
func (d *Disk) has(root wire.Hash) bool {
	return d != nil && d.known[root] != nil && d.known[root].there && !d.known[root].before
}

// Pin keeps the files with some roots, whatever versions are held, in place of those pinned before.
func (d *Disk) Pin(roots ...wire.Hash) {
	if d != nil {
		d.saved = roots
	}
}

// Sweep drops the files of versions that are neither held nor pinned, once Pin was called.
func (d *Disk) Sweep(held func(root wire.Hash) bool) {
	if d == nil || d.saved == nil {
		return
	}
	pinned := map[wire.Hash]bool{}
	for _, root := range d.saved {
		pinned[root] = true
	}
	for root, f := range d.known {
		if f.there && !pinned[root] && !held(root) {
			delete(d.known, root)
			var failed error
			d.add(task{work: func() { failed = d.files.DropBlob(root) }, done: func() { d.told(failed) }})
		}
	}
}

// ErrDamaged says that a file does not have the bytes that were written.
var ErrDamaged = errors.New("the file of a version is not as it was written")

// read fills data with a version's bytes, which it checks.
func (d *Disk) read(root wire.Hash, data []byte) error {
	if d == nil {
		return ErrNoFiles
	}
	return d.files.ReadBlob(root, 0, data)
}

// chunk returns a chunk of a version's file, nil if it is not as it was written.
func (d *Disk) chunk(root, leaf wire.Hash, i uint32, size int) []byte {
	from := int(i) * merkle.ChunkBytes
	b := make([]byte, min(merkle.ChunkBytes, size-from))
	if d.files.ReadBlob(root, int64(from), b) != nil || merkle.Leaf(b) != leaf {
		return nil
	}
	return b
}

// collect gives back the memory of what was let go of beside large versions, and of these. The
// collector would wait until as much again is in use.
func (d *Disk) collect(bytes int) {
	if d != nil && bytes >= FileFrom {
		go runtime.GC()
	}
}

// large reports whether versions of a size leave memory.
func (d *Disk) large(bytes int) bool { return d != nil && bytes >= d.from }
