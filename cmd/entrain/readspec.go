package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/checkpoint/depot"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
)

// readSpec reads a specification; unless dir is "", it goes on from the checkpoint there, whose tokenizer is returned.
func readSpec(text []byte, dir string) (spec.Spec, tokenizer.Tokenizer, error) {
	if dir == "" {
		s, err := spec.Parse(text)
		return s, nil, err
	}
	m, err := model.Open(dir)
	if err != nil {
		return spec.Spec{}, nil, fmt.Errorf("--from: %w", err)
	}
	words, err := m.Tokenizer()
	if err != nil {
		return spec.Spec{}, nil, fmt.Errorf("--from: %w", err)
	}
	s, err := spec.Continue(text, spec.ModelOf(m.Config, m.Hash(), words.Hash()))
	if err != nil {
		return s, nil, fmt.Errorf("with the checkpoint %q: %w", m.Dir, err)
	}
	if s.Model.FromLocation != "" && !depot.IsAddress(s.Model.FromLocation) {
		if s.Model.FromLocation, err = filepath.Abs(s.Model.FromLocation); err != nil {
			return s, nil, err
		}
	}
	return s, words, nil
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
