package participant

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/wire"
)

// training returns what another run needs to resume from a checkpoint, nil if the writer does not
// know all of it.
func (c *checkpoints) training(n node.Checkpoint) *checkpoint.Training {
	s := c.trainer.Spec
	data, err := wire.ParseHash(s.Data.Manifest)
	if !n.Known || err != nil {
		return nil
	}
	t := &checkpoint.Training{
		Version: checkpoint.Version, Data: data, Order: s.DataSeed(), Tokens: uint32(s.Data.Sequence), Sequence: s.First() + n.Sequence,
		Codec: s.Optimizer.Kind().Name, Optimizer: uint64(c.trainer.Engine.StateLen()),
	}
	for _, e := range n.Endings {
		t.States = append(t.States, checkpoint.Momentum{Member: e.Member, State: e.State})
	}
	return t
}

// writeOptimizer writes the member's own optimizer state beside the checkpoint in path.
func (c *checkpoints) writeOptimizer(path string, n node.Checkpoint) error {
	if path += checkpoint.OptimizerSuffix; n.Own == nil {
		return nil
	}
	if err := os.MkdirAll(string(c.Dir), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, 0o600, func(w io.Writer) error {
		return checkpoint.WriteOptimizer(w, checkpoint.Optimizer{Run: c.run, Member: c.self, Step: uint32(n.Step), Params: n.Hash, State: n.Own})
	})
}

// resume returns this member's optimizer state at the checkpoint that the run resumes, nil if it
// has none. It looks beside the checkpoint and in the state directory.
func (p *Participant) resume() []float32 {
	s := p.Trainer.Spec
	params, _ := s.From() // a run that resumes goes on from some
	paths := []string{p.saver.Path(s.Resume.Step) + checkpoint.OptimizerSuffix}
	if p.Trainer.From != "" {
		paths = append([]string{p.Trainer.From + checkpoint.OptimizerSuffix}, paths...)
	}
	for _, path := range paths {
		state, err := p.readOptimizer(path, params)
		if err == nil {
			return state
		}
		if p.Log != nil && !errors.Is(err, fs.ErrNotExist) {
			p.Log.Warn("an optimizer state is not used", "file", path, "error", err)
		}
	}
	return nil
}

// readOptimizer reads this member's optimizer state for the parameters of a checkpoint.
func (p *Participant) readOptimizer(path string, params wire.Hash) ([]float32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	o, _, err := checkpoint.ReadOptimizer(f, p.Trainer.Engine.StateLen())
	switch {
	case err != nil:
		return nil, err
	case o.Member != p.Key.Public():
		return nil, fmt.Errorf("it is member %s's", o.Member)
	case o.Params != params:
		return nil, fmt.Errorf("it goes with the parameters %s", o.Params)
	}
	return o.State, nil
}
