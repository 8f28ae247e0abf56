package node

import (
	"bytes"
	"errors"
	"slices"

	"github.com/entrain-network/entrain/engine"
)

// writing is a toy that writes updates down: the payloads one after another.
type writing struct{ toy }

func (e writing) Follower() (engine.Follower, bool) { return e, true }

var updateMagic = []byte("toys' update")

func (e writing) UpdateLen() int { return len(updateMagic) + len(toyMagic) + 4 }
func (e writing) UpdateMax() int { return len(updateMagic) + 16*(len(toyMagic)+4) }

func (e writing) Update(dst []byte, payloads [][]byte) ([]byte, error) {
	return append(append(dst, updateMagic...), bytes.Join(payloads, nil)...), nil
}

func (e writing) CheckUpdate(update []byte) error {
	if !bytes.HasPrefix(update, updateMagic) || len(update) > e.UpdateMax() {
		return errors.New("not an update of toys")
	}
	return nil
}

func (e writing) SlicesMax() int                                  { return 1 }
func (e writing) SliceRange(int, int) (int, int)                  { return 0, len(toyMagic) + 4 }
func (e writing) UpdateSliceMax(int, int) int                     { return e.UpdateMax() }
func (e writing) JoinUpdate(d []byte, s [][]byte) ([]byte, error) { return append(d, s[0]...), nil }
func (e writing) UpdateSlice(dst []byte, ranges [][]byte, _, _ int) ([]byte, error) {
	return e.Update(dst, ranges)
}

func (e writing) Follow(params engine.Vector, update []byte, step uint32) error {
	if err := e.CheckUpdate(update); err != nil {
		return err
	}
	return e.Apply(params, slices.Collect(slices.Chunk(update[len(updateMagic):], len(toyMagic)+4)), step)
}
