// Package model opens the models of checkpoints, on this machine or at an address, writes text with
// them, and converts them from and to the formats of other programs.
//
// A checkpoint is named by its directory, by a participant's state directory, whose newest
// checkpoint is meant, or by the address of a place that package checkpoint/depot knows. Fetcher
// keeps what it fetched in a Cache that processes share.
package model

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// Dir is a directory of checkpoints, each in a subdirectory named after its step:
// step-000300, step-000600, ...
type Dir string

// CheckpointsDir is the directory of a participant's checkpoints, below its state directory.
const CheckpointsDir = "checkpoints"

const stepPrefix = "step-"

// Path returns the directory of a step's checkpoint.
func (c Dir) Path(step uint32) string {
	return filepath.Join(string(c), fmt.Sprintf("%s%06d", stepPrefix, step))
}

// Steps returns the steps that have a checkpoint, ascending.
func (c Dir) Steps() ([]uint32, error) {
	entries, err := os.ReadDir(string(c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []uint32
	for _, e := range entries {
		if s, ok := strings.CutPrefix(e.Name(), stepPrefix); ok && e.IsDir() {
			if n, err := strconv.ParseUint(s, 10, 32); err == nil {
				steps = append(steps, uint32(n))
			}
		}
	}
	slices.SortFunc(steps, cmp.Compare)
	return steps, nil
}

// newest returns the directory of the last checkpoint, or "".
func (c Dir) newest() (string, error) {
	steps, err := c.Steps()
	if err != nil || len(steps) == 0 {
		return "", err
	}
	return c.Path(steps[len(steps)-1]), nil
}

// Find returns the directory of the checkpoint with the given parameters, or "".
func (c Dir) Find(params string) (string, error) {
	steps, err := c.Steps()
	if err != nil {
		return "", err
	}
	for _, step := range slices.Backward(steps) {
		if saved, err := checkpoint.OpenLocal(os.DirFS(c.Path(step))); err == nil && saved.Manifest.Params.String() == params {
			return c.Path(step), nil
		}
	}
	return "", nil
}

// Recall returns the parameters with the given hash, or nil if no checkpoint has them.
func (c Dir) Recall(params wire.Hash, layout tensor.Layout) []float32 {
	steps, err := c.Steps()
	if err != nil {
		return nil
	}
	for _, step := range slices.Backward(steps) {
		saved, err := checkpoint.OpenLocal(os.DirFS(c.Path(step)))
		if err != nil || saved.Manifest.Params != params {
			continue
		}
		flat := make([]float32, layout.Len())
		if err := saved.Params(layout, flat); err == nil {
			return flat
		}
	}
	return nil
}
