// Package disk is what a simulated machine keeps over crashes.
package disk

import (
	"bytes"
	"maps"
	"slices"
	"syscall"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/p2p/mem"
	"github.com/entrain-network/entrain/wire"
)

// Disk is a [node.CaseStore] in memory. Its zero value is empty.
type Disk struct {
	// Shares says that nobody changes what is saved, as long as anybody has it. Then it is not copied.
	Shares bool
	// Full says that nothing more can be written.
	Full bool

	saved node.Saved
	ok    bool
	own   []node.OwnResult
	blobs map[wire.Hash][]byte
	cases []node.SavedCase
}

var _ node.CaseStore = (*Disk)(nil)

// Backup returns a copy of what is saved now.
func (d *Disk) Backup() Disk {
	b := *d
	b.own, b.cases, b.blobs = slices.Clone(d.own), slices.Clone(d.cases), maps.Clone(d.blobs)
	return b
}

// room returns why nothing can be written, if so.
func (d *Disk) room() error {
	if d.Full {
		return syscall.ENOSPC
	}
	return nil
}

// SaveOwn implements node.Store.
func (d *Disk) SaveOwn(o node.OwnResult, keep coordinator.Round) error {
	if err := d.room(); err != nil {
		return err
	}
	d.own = slices.DeleteFunc(d.own, func(b node.OwnResult) bool { return b.Round%keep == o.Round%keep })
	d.own = append(d.own, o)
	return nil
}

// SaveBlob implements blobs.Files.
func (d *Disk) SaveBlob(root wire.Hash, data []byte) error {
	if err := d.room(); err != nil {
		return err
	}
	if d.blobs == nil {
		d.blobs = map[wire.Hash][]byte{}
	}
	if !d.Shares {
		data = bytes.Clone(data)
	}
	d.blobs[root] = data
	return nil
}

// NewBlob implements blobs.Files.
func (d *Disk) NewBlob() blobs.NewFile { return &newBlob{disk: d} }

type newBlob struct {
	mem.File
	disk *Disk
}

func (b *newBlob) WriteAt(data []byte, at int64) (int, error) {
	if err := b.disk.room(); err != nil {
		return 0, err
	}
	return b.File.WriteAt(data, at)
}

func (b *newBlob) Commit(root wire.Hash) error { return b.disk.SaveBlob(root, b.Bytes()) }

func (b *newBlob) Discard() {}

// ReadBlob implements blobs.Files.
func (d *Disk) ReadBlob(root wire.Hash, from int64, dst []byte) error {
	_, err := bytes.NewReader(d.blobs[root]).ReadAt(dst, from)
	return err
}

// DropBlob implements blobs.Files.
func (d *Disk) DropBlob(root wire.Hash) error {
	delete(d.blobs, root)
	return nil
}

// Blobs implements blobs.Files.
func (d *Disk) Blobs() ([]wire.Hash, error) {
	return slices.SortedFunc(maps.Keys(d.blobs), wire.Hash.Compare), nil
}

// LoadOwn implements node.Store.
func (d *Disk) LoadOwn() ([]node.OwnResult, error) {
	return slices.Clone(d.own), nil
}

// SaveCase implements node.CaseStore.
func (d *Disk) SaveCase(c node.SavedCase) error {
	if err := d.room(); err != nil {
		return err
	}
	d.cases = append(d.cases, c)
	return nil
}

// DropCase implements node.CaseStore.
func (d *Disk) DropCase(s client.Share) error {
	d.cases = slices.DeleteFunc(d.cases, func(c node.SavedCase) bool { return c.Share == s })
	return nil
}

// LoadCases implements node.CaseStore.
func (d *Disk) LoadCases() ([]node.SavedCase, error) { return slices.Clone(d.cases), nil }

// Load implements node.Store.
func (d *Disk) Load() (node.Saved, bool, error) {
	return d.saved, d.ok, nil
}

// Save implements node.Store.
func (d *Disk) Save(s node.Saved) error {
	if err := d.room(); err != nil {
		return err
	}
	d.saved, d.ok = s, true
	return nil
}
