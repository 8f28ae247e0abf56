package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/wire"
)

// training is how a run goes on from a checkpoint, nil if its writer does not know.
func (c *checkpoints) training(n node.Checkpoint) *checkpoint.Training {
	s := c.trainer.spec
	data, err := wire.ParseHash(s.Data.Manifest)
	if !n.Known || err != nil {
		return nil
	}
	t := &checkpoint.Training{
		Version: checkpoint.Version, Data: data, Order: s.DataSeed(), Tokens: uint32(s.Data.Sequence), Sequence: s.First() + n.Sequence,
		Codec: s.Optimizer.Codec, Optimizer: uint64(c.trainer.engine.StateLen()),
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
		return checkpoint.WriteOptimizer(w, checkpoint.Optimizer{Run: c.run, Member: c.self, Step: n.Step, Params: n.Hash, State: n.Own})
	})
}

// resume returns the optimizer state with which this member goes on from the checkpoint that the run resumes, nil if it has none: from beside the
// checkpoint, or from the state directory.
func (p *participant) resume() []float32 {
	s := p.trainer.spec
	params, _ := s.From() // a run that resumes goes on from some
	paths := []string{p.saver.Path(s.Resume.Step) + checkpoint.OptimizerSuffix}
	if p.trainer.from != "" {
		paths = append([]string{p.trainer.from + checkpoint.OptimizerSuffix}, paths...)
	}
	for _, path := range paths {
		state, err := p.readOptimizer(path, params)
		if err == nil {
			return state
		}
		if p.log != nil && !errors.Is(err, fs.ErrNotExist) {
			p.log.Warn("an optimizer state is not used", "file", path, "error", err)
		}
	}
	return nil
}

// readOptimizer reads this member's optimizer state that goes with the parameters of a checkpoint.
func (p *participant) readOptimizer(path string, params wire.Hash) ([]float32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	o, _, err := checkpoint.ReadOptimizer(f, p.trainer.engine.StateLen())
	switch {
	case err != nil:
		return nil, err
	case o.Member != p.key.Public():
		return nil, fmt.Errorf("it is member %s's", o.Member)
	case o.Params != params:
		return nil, fmt.Errorf("it goes with the parameters %s", o.Params)
	}
	return o.State, nil
}

// resumeSpec has a run that goes on from the checkpoint in dir, or from the newest of a state directory, take up its training.
func (c console) resumeSpec(s spec.Spec, dir string) (spec.Spec, []byte, error) {
	fault := func(err error) (spec.Spec, []byte, error) { return s, nil, fmt.Errorf("--resume: %w", err) }
	if dir == "" {
		return fault(errors.New("say from which checkpoint with --from"))
	}
	path, saved, err := model.OpenCheckpoint(dir)
	if err != nil {
		return fault(err)
	}
	t, err := saved.Training()
	if errors.Is(err, fs.ErrNotExist) {
		return fault(fmt.Errorf("%q has no %s: it was not written by a member of a run at an epoch's end, or by one that did not know all results; "+
			"another member's may have it, or leave --resume out and begin with fresh optimizers", path, checkpoint.TrainingFile))
	}
	if err != nil {
		return fault(fmt.Errorf("%q: %w", path, err))
	}
	if err := sameTraining(s, t); err != nil {
		return fault(fmt.Errorf("the run that wrote %q %w; leave --resume out to begin with fresh optimizers", path, err))
	}
	s.Resume = &spec.Resume{Step: saved.Manifest.Step, Sequence: t.Sequence, States: map[string]string{}}
	for _, m := range t.States[:min(len(t.States), spec.ResumeStatesMax)] {
		s.Resume.States[m.Member.String()] = m.State.String()
	}
	if n := len(t.States) - spec.ResumeStatesMax; n > 0 {
		c.say("the specification has room for the states of %d members; %d others begin afresh", spec.ResumeStatesMax, n)
	}
	if err := s.Check(); err != nil {
		return s, nil, err
	}
	text, err := s.Append(nil)
	return s, text, err
}

// sameTraining says wherein a run differs from the one whose training it would take up, if it does.
func sameTraining(s spec.Spec, t checkpoint.Training) error {
	n, err := s.StateLen()
	switch {
	case err != nil:
		return err
	case s.Data.Manifest != t.Data.String():
		return fmt.Errorf("trained on the data set %s", t.Data)
	case s.DataSeed() != t.Order:
		return errors.New("took its data in another order: data.seed differs")
	case s.Data.Sequence != int(t.Tokens):
		return fmt.Errorf("had data.sequence = %d", t.Tokens)
	case s.Optimizer.Codec != t.Codec:
		return fmt.Errorf("had optimizer.codec = %q", t.Codec)
	case n != t.Optimizer:
		return fmt.Errorf("had %d numbers of optimizer state, this one has %d", t.Optimizer, n)
	}
	return nil
}
