// Package disk is what a simulated machine keeps over crashes.
package disk

import (
	"maps"
	"slices"
	"syscall"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/node"
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
	begun map[coordinator.Round][]float32
	cases []node.SavedCase
}

var _ node.CaseStore = (*Disk)(nil)

// Backup returns a copy of what is saved now.
func (d *Disk) Backup() Disk {
	b := *d
	b.own, b.cases, b.begun = slices.Clone(d.own), slices.Clone(d.cases), maps.Clone(d.begun)
	return b
}

// room returns why nothing can be written, if so.
func (d *Disk) room() error {
	if d.Full {
		return syscall.ENOSPC
	}
	return nil
}

func (d *Disk) copy(values []float32) []float32 {
	if d.Shares {
		return values
	}
	return slices.Clone(values)
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

// SaveBegun implements node.Store.
func (d *Disk) SaveBegun(round, keep coordinator.Round, state []float32) error {
	if err := d.room(); err != nil {
		return err
	}
	if d.begun == nil {
		d.begun = map[coordinator.Round][]float32{}
	}
	d.begun[round] = d.copy(state)
	maps.DeleteFunc(d.begun, func(of coordinator.Round, _ []float32) bool { return of%keep == round%keep && of != round })
	return nil
}

// LoadOwn implements node.Store.
func (d *Disk) LoadOwn() ([]node.OwnResult, error) {
	list := slices.Clone(d.own)
	for i := range list {
		list[i].Begun = d.begun[list[i].Round]
	}
	return list, nil
}

// SaveCase implements node.CaseStore.
func (d *Disk) SaveCase(c node.SavedCase) error {
	if err := d.room(); err != nil {
		return err
	}
	c.Params, c.State = d.copy(c.Params), d.copy(c.State)
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
	s := d.saved
	s.Params, s.Optimizer = append([]float32(nil), s.Params...), append([]float32(nil), s.Optimizer...)
	return s, d.ok, nil
}

// Save implements node.Store.
func (d *Disk) Save(s node.Saved) error {
	if err := d.room(); err != nil {
		return err
	}
	s.Params, s.Optimizer = d.copy(s.Params), d.copy(s.Optimizer)
	d.saved, d.ok = s, true
	return nil
}
