package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// checkpoints are the directories step-000300, step-000600, ... below one, of which the last few are kept.
type checkpoints struct {
	model.Dir
	keep    int
	trainer *trainer
	run     wire.Hash  // of the member that writes them
	self    key.Public // the member
}

func newCheckpoints(dir string, keep int, t *trainer) *checkpoints {
	return &checkpoints{Dir: model.Dir(dir), keep: keep, trainer: t}
}

// write writes a checkpoint, unless it is there, and beside it the member's own optimizer state; removes those that are too old; and returns its
// directory and its manifest's hash.
func (c *checkpoints) write(n node.Checkpoint) (path string, manifest wire.Hash, err error) {
	n.Step += c.trainer.spec.Before()
	path = c.Path(n.Step)
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
	config := model.CheckpointConfig(t.model)
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

// prune removes all but the last few, and what interrupted writes left.
func (c *checkpoints) prune() error {
	steps, err := c.Steps()
	if err != nil {
		return err
	}
	for _, step := range steps[:max(0, len(steps)-c.keep)] {
		if err := errors.Join(os.RemoveAll(c.Path(step)), os.RemoveAll(c.Path(step)+checkpoint.OptimizerSuffix)); err != nil {
			return err
		}
	}
	return atomicfile.RemoveTemps(string(c.Dir), time.Hour)
}

// last sees to it that there is a checkpoint of the final parameters, and returns its directory: if none was written at the last epoch's
// end, it is made from the state file.
func (c *checkpoints) last(store node.Store, params string) (string, error) {
	if path, err := c.Find(params); path != "" || err != nil {
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
