package participant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/tokenizer/chat"
	"github.com/entrain-network/entrain/wire"
)

// checkpoints writes a member's checkpoints to a directory and keeps the last few.
type checkpoints struct {
	model.Dir
	keep    int
	trainer *trainer.Trainer
	run     wire.Hash  // of the member that writes them
	self    key.Public // the member
}

func NewCheckpoints(dir string, keep int, t *trainer.Trainer) *checkpoints {
	return &checkpoints{Dir: model.Dir(dir), keep: keep, trainer: t}
}

// write writes a checkpoint, unless it exists, and beside it the member's own optimizer state. It
// removes old ones, and returns the checkpoint's directory and its manifest's hash.
func (c *checkpoints) write(n node.Checkpoint) (path string, manifest wire.Hash, err error) {
	n.Step += coordinator.Step(c.trainer.Spec.Before())
	path = c.Path(uint32(n.Step))
	if err := c.writeOptimizer(path, n); err != nil {
		return "", wire.Hash{}, err
	}
	if saved, err := checkpoint.OpenLocal(os.DirFS(path)); err == nil && saved.Manifest.Params == n.Hash {
		return path, saved.Manifest.Hash(), nil
	}
	// A checkpoint of that step is damaged, or belongs to a history that was rolled back.
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
	return path, m.Hash(), c.prune(uint32(n.Step))
}

func (c *checkpoints) model(n node.Checkpoint) checkpoint.Model {
	t := c.trainer
	config, end := model.CheckpointConfig(t.Model), chat.End(t.Set.Manifest().Chat, t.Tokenizer)
	config.EOS = &end
	facts := []checkpoint.Fact{{Name: "data manifest", Value: t.Spec.Data.Manifest}}
	switch from, ok := t.Spec.From(); {
	case ok && config.LoRA != nil:
		config.LoRA.Base, config.LoRA.Location = from, t.Spec.Model.FromLocation
		facts = append(facts, checkpoint.Fact{Name: "adapters of the parameters", Value: t.Spec.Model.From})
	case ok:
		facts = append(facts, checkpoint.Fact{Name: "trained from the parameters", Value: t.Spec.Model.From})
	}
	return checkpoint.Model{
		Run: t.Spec.Name, Epoch: uint32(n.Epoch), Round: uint32(n.Round), Step: uint32(n.Step),
		Config: config, Tokenizer: t.Tokenizer, Layout: t.Model.Layout(), Params: n.Params,
		Card: checkpoint.Card{
			Datasets: []string{t.Set.Manifest().Name},
			Facts:    facts,
		},
		Training: c.training(n),
		Chat:     t.Set.Manifest().Chat,
	}
}

// prune removes all but the last checkpoints up to a step. Those of later steps are from a history
// that was rolled back, or of the run that this one continues.
func (c *checkpoints) prune(last uint32) error {
	steps, err := c.Steps()
	if err != nil {
		return err
	}
	steps = slices.DeleteFunc(steps, func(s uint32) bool { return s > last })
	for _, step := range steps[:max(0, len(steps)-c.keep)] {
		if err := errors.Join(os.RemoveAll(c.Path(step)), os.RemoveAll(c.Path(step)+checkpoint.OptimizerSuffix)); err != nil {
			return err
		}
	}
	return nil
}

// last returns the directory of a checkpoint of the final parameters. It makes it from the state
// file if no member wrote one at the end of the last epoch.
func (c *checkpoints) last(store node.Store, params string) (string, error) {
	if path, err := c.Find(params); path != "" || err != nil {
		return path, err
	}
	s, ok, err := store.Load()
	if err != nil || !ok {
		return "", err
	}
	if s.Params.String() != params {
		return "", nil // saved before the end; others have the model
	}
	values := make([]float32, c.trainer.Engine.ParamsLen())
	err = tensor.Fill(values, func(b []byte) error { return store.ReadBlob(s.Params, 0, b) })
	if err != nil || merkle.BlobRoot(tensor.Bytes(values)) != s.Params {
		return "", err
	}
	path, _, err := c.write(node.Checkpoint{Epoch: s.Epoch, Round: s.Round, Step: s.Step, Hash: s.Params, Params: values})
	if err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	return path, nil
}
