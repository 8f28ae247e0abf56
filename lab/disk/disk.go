// Package disk is what a simulated machine keeps over crashes.
package disk

import (
	"slices"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/node"
)

// Disk is a [node.CaseStore] in memory. Its zero value is empty.
type Disk struct {
	// Shares says that nobody changes what is saved, as long as anybody has it. Then it is not copied.
	Shares bool

	saved node.Saved
	ok    bool
	own   []node.OwnResult
	begun map[coordinator.Round][]float32
	cases []node.SavedCase
}

var _ node.CaseStore = (*Disk)(nil)

func (d *Disk) copy(values []float32) []float32 {
	if d.Shares {
		return values
	}
	return slices.Clone(values)
}

// SaveOwn implements node.Store.
func (d *Disk) SaveOwn(o node.OwnResult, keep coordinator.Round) error {
	d.own = slices.DeleteFunc(d.own, func(b node.OwnResult) bool { return b.Round%keep == o.Round%keep })
	d.own = append(d.own, o)
	return nil
}

// SaveBegun implements node.Store.
func (d *Disk) SaveBegun(round, keep coordinator.Round, state []float32) error {
	if d.begun == nil {
		d.begun = map[coordinator.Round][]float32{}
	}
	d.begun[round] = d.copy(state)
	delete(d.begun, round-keep)
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
	s.Params, s.Optimizer = d.copy(s.Params), d.copy(s.Optimizer)
	d.saved, d.ok = s, true
	return nil
}
