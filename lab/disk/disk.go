// Package disk is what a simulated machine keeps over crashes.
package disk

import (
	"slices"

	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/node"
)

// Disk is a [node.CaseStore] in memory. Its zero value is empty.
type Disk struct {
	saved  node.Saved
	ok     bool
	signed []byte
	cases  []node.SavedCase
}

var _ node.CaseStore = (*Disk)(nil)

// SaveCommitment implements node.Store.
func (d *Disk) SaveCommitment(b []byte) error { d.signed = b; return nil }

// LoadCommitment implements node.Store.
func (d *Disk) LoadCommitment() ([]byte, error) { return d.signed, nil }

// SaveCase implements node.CaseStore.
func (d *Disk) SaveCase(c node.SavedCase) error {
	c.Params, c.State = slices.Clone(c.Params), slices.Clone(c.State)
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
	s.Params, s.Optimizer = append([]float32(nil), s.Params...), append([]float32(nil), s.Optimizer...)
	d.saved, d.ok = s, true
	return nil
}
