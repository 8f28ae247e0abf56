package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// checkpoints are the directories step-000300, step-000600, ... below one, of which the last few are kept.
type checkpoints struct {
	dir     string
	keep    int
	trainer *trainer
	run     wire.Hash  // of the member that writes them
	self    key.Public // the member
}

func newCheckpoints(dir string, keep int, t *trainer) *checkpoints {
	return &checkpoints{dir: dir, keep: keep, trainer: t}
}

const stepPrefix = "step-"

// path is where the checkpoint of a step lies.
func (c *checkpoints) path(step uint32) string {
	return filepath.Join(c.dir, fmt.Sprintf("%s%06d", stepPrefix, step))
}

// write writes a checkpoint, unless it is there, and beside it the member's own optimizer state; removes those that are too old; and returns its
// directory and its manifest's hash.
func (c *checkpoints) write(n node.Checkpoint) (path string, manifest wire.Hash, err error) {
	n.Step += c.trainer.spec.Before()
	path = c.path(n.Step)
	if err := c.writeOptimizer(path, n); err != nil {
		return "", wire.Hash{}, err
	}
	if saved, err := checkpoint.OpenLocal(os.DirFS(path)); err == nil && saved.Manifest.Params == n.Hash {
		return path, saved.Manifest.Hash(), nil
	}
	// What is there of that step is of a history that was rolled back, or damaged.
	if err := os.RemoveAll(path); err != nil {
		return "", wire.Hash{}, err
	}
	var m checkpoint.Manifest
	err = atomicfile.WriteDir(context.Background(), path, func(create atomicfile.Create) error {
		var err error
		m, err = checkpoint.Write(create, c.model(n), checkpoint.Options{})
		return err
	})
	if err != nil {
		return "", wire.Hash{}, err
	}
	return path, m.Hash(), c.prune()
}

func (c *checkpoints) model(n node.Checkpoint) checkpoint.Model {
	t := c.trainer
	end := t.tokenizer.End()
	config := checkpointConfig(t.model)
	config.EOS = &end
	facts := []checkpoint.Fact{{Name: "data manifest", Value: t.spec.Data.Manifest}}
	if t.spec.Model.From != "" {
		facts = append(facts, checkpoint.Fact{Name: "trained from the parameters", Value: t.spec.Model.From})
	}
	return checkpoint.Model{
		Run: t.spec.Name, Epoch: n.Epoch, Round: n.Round, Step: n.Step,
		Config: config, Tokenizer: t.tokenizer, Layout: t.model.Layout(), Params: n.Params,
		Card: checkpoint.Card{
			Datasets: []string{t.set.Manifest().Name},
			Facts:    facts,
		},
		Training: c.training(n),
	}
}

func checkpointConfig(m llama.Config) checkpoint.Config {
	return checkpoint.Config{
		Vocab: m.Vocab, Hidden: m.Hidden, Layers: m.Layers, Heads: m.Heads, KVHeads: m.KVHeads, HeadDim: m.HeadDim,
		FFN: m.FFN, Context: m.Context, Theta: m.Theta, Eps: m.Eps, Tied: m.Tied,
	}
}

func llamaConfig(c checkpoint.Config) llama.Config {
	return llama.Config{
		Vocab: c.Vocab, Hidden: c.Hidden, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim,
		FFN: c.FFN, Context: c.Context, Theta: c.Theta, Eps: c.Eps, Tied: c.Tied,
	}
}

// steps are those of the checkpoints there are, ascending.
func (c *checkpoints) steps() ([]uint32, error) {
	entries, err := os.ReadDir(c.dir)
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
func (c *checkpoints) newest() (string, error) {
	steps, err := c.steps()
	if err != nil || len(steps) == 0 {
		return "", err
	}
	return c.path(steps[len(steps)-1]), nil
}

// prune removes all but the last few, and what interrupted writes left.
func (c *checkpoints) prune() error {
	steps, err := c.steps()
	if err != nil {
		return err
	}
	for _, step := range steps[:max(0, len(steps)-c.keep)] {
		if err := errors.Join(os.RemoveAll(c.path(step)), os.RemoveAll(c.path(step)+checkpoint.OptimizerSuffix)); err != nil {
			return err
		}
	}
	return atomicfile.RemoveTemps(c.dir, time.Hour)
}

// find returns the directory of the checkpoint of the given parameters, or "".
func (c *checkpoints) find(params string) (string, error) {
	steps, err := c.steps()
	if err != nil {
		return "", err
	}
	for _, step := range slices.Backward(steps) {
		if saved, err := checkpoint.OpenLocal(os.DirFS(c.path(step))); err == nil && saved.Manifest.Params.String() == params {
			return c.path(step), nil
		}
	}
	return "", nil
}

// last sees to it that there is a checkpoint of the final parameters, and returns its directory: if none was written at the last epoch's
// end, it is made from the state file.
func (c *checkpoints) last(store node.Store, params string) (string, error) {
	if path, err := c.find(params); path != "" || err != nil {
		return path, err
	}
	s, ok, err := store.Load()
	if err != nil || !ok {
		return "", err
	}
	hash := merkle.BlobRoot(tensor.Bytes(s.Params))
	if hash.String() != params {
		return "", nil // saved before the end; others have the model
	}
	path, _, err := c.write(node.Checkpoint{Epoch: s.Epoch, Round: s.Round, Step: s.Step, Hash: hash, Params: s.Params})
	if err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	return path, nil
}

// recall returns the parameters with a hash from the checkpoints there are, nil if none has them.
func (c *checkpoints) recall(params wire.Hash) []float32 {
	steps, err := c.steps()
	if err != nil {
		return nil
	}
	for _, step := range slices.Backward(steps) {
		saved, err := checkpoint.OpenLocal(os.DirFS(c.path(step)))
		if err != nil || saved.Manifest.Params != params {
			continue
		}
		layout := c.trainer.model.Layout()
		flat := make([]float32, layout.Len())
		if err := saved.Params(layout, flat); err == nil {
			return flat
		}
	}
	return nil
}

// needCheckpoint are the arguments of commands that read a checkpoint.
func needCheckpoint(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("say one checkpoint, a directory or an address: %s", cmd.UseLine())
	}
	return nil
}

// completeDirs completes arguments with directories.
func completeDirs(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// savedModel is a model read from a checkpoint.
type savedModel struct {
	dir    string // of the checkpoint
	saved  *checkpoint.Saved
	config llama.Config
	params []float32
}

// openCheckpoint opens a checkpoint directory, or the newest checkpoint of a state directory.
func openCheckpoint(dir string) (path string, saved *checkpoint.Saved, err error) {
	newest, err := newCheckpoints(filepath.Join(dir, "checkpoints"), 1, nil).newest()
	if err != nil {
		return "", nil, err
	}
	if newest != "" {
		dir = newest
	}
	if saved, err = checkpoint.OpenLocal(os.DirFS(dir)); err != nil {
		var corrupt *checkpoint.CorruptError
		if errors.As(err, &corrupt) {
			return "", nil, err
		}
		return "", nil, fmt.Errorf("%w; %q is no checkpoint of entrain: it should be a directory with %s", err, dir, checkpoint.ManifestFile)
	}
	return dir, saved, nil
}

// openModel reads the model of a checkpoint directory, or of the newest checkpoint of a state directory.
func openModel(dir string) (savedModel, error) {
	dir, saved, err := openCheckpoint(dir)
	if err != nil {
		return savedModel{}, err
	}
	m := savedModel{dir: dir, saved: saved}
	m.config = llamaConfig(m.saved.Config)
	if err := m.config.Check(); err != nil {
		return savedModel{}, fmt.Errorf("checkpoint %q: %w", dir, err)
	}
	layout := m.config.Layout()
	m.params = make([]float32, layout.Len())
	if err := m.saved.Params(layout, m.params); err != nil {
		return savedModel{}, fmt.Errorf("checkpoint %q: %w", dir, err)
	}
	return m, nil
}
