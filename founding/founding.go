// Package founding prepares a run and creates it on a chain.
//
// A Draft is the text of a specification, as its author writes it, with what belongs to it on this
// machine: the prepared data, and the checkpoint that the run starts from. Complete fills in what
// the author left open, the hash of the data and the model of the checkpoint, and refuses what does
// not fit together. The result is the text that Create publishes and that every participant reads.
// A Dataset is prepared from files, and a Replica set up for a chain, as commands say.
// newPreview computes what a specification means, without a chain. Hosting makes a chain for one
// run and serves all that others need to join it.
package founding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/checkpoint/depot"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// Draft is a specification before it is complete.
type Draft struct {
	Text []byte // TOML
	Data string // directory of the prepared data; "" means data.location
	From string // directory of the checkpoint that the run starts from, or of a state; "" is none
	// Address is where the checkpoint in From came from; members fetch it there, if it is public.
	Address string
	Shelf   string // address of a copy of From that members fetch; "" is none
	Resume  bool   // take up the training of the checkpoint's run, and not only its model
	// FewWitnesses says that the author insists on witnesses that colluding members may capture.
	FewWitnesses bool

	Say func(format string, args ...any) // tells the author what was left out; nil discards
}

// Complete returns the specification with everything filled in, and the text to publish.
func (d Draft) Complete() (spec.Spec, []byte, error) {
	s, words, err := d.read()
	if err != nil {
		return s, nil, err
	}
	if fault := weakness(s); fault != nil && !d.FewWitnesses {
		return s, nil, fault
	}
	if _, err := trainer.SizesOf(s); err != nil {
		return s, nil, err
	}
	filled, err := fillData(&s, d.Data, words)
	if err != nil {
		return s, nil, err
	}
	chosen, err := chooseAggregate(&s)
	if err != nil {
		return s, nil, err
	}
	if d.Resume {
		if err := d.resume(&s); err != nil {
			return s, nil, fmt.Errorf("--resume: %w", err)
		}
	} else if !filled && !chosen && d.From == "" {
		return s, d.Text, nil
	}
	text, err := s.Append(nil)
	return s, text, err
}

// Read returns the specification as far as it is known without the data. If d names data, it must
// fit the specification.
func (d Draft) Read() (spec.Spec, error) {
	s, words, err := d.read()
	if err == nil && d.Data != "" {
		_, err = fillData(&s, d.Data, words)
	}
	return s, err
}

// read reads the specification, and returns the tokenizer of the checkpoint that it starts from.
func (d Draft) read() (spec.Spec, tokenizer.Tokenizer, error) {
	if d.From == "" {
		s, err := spec.Parse(d.Text, all.Kinds())
		return s, nil, err
	}
	m, err := model.Open(d.From)
	if err != nil {
		return spec.Spec{}, nil, fmt.Errorf("--from: %w", err)
	}
	words, err := m.Tokenizer()
	if err != nil {
		return spec.Spec{}, nil, fmt.Errorf("--from: %w", err)
	}
	s, err := spec.Continue(d.Text, spec.ModelOf(m.Config, m.Hash(), words.Hash()), all.Kinds())
	if err != nil {
		return s, nil, fmt.Errorf("with the checkpoint %q: %w", m.Dir, err)
	}
	switch {
	case s.Model.FromLocation != "":
	case d.Shelf != "":
		s.Model.FromLocation = d.Shelf
	case depot.IsPublic(d.Address):
		s.Model.FromLocation = d.Address
	}
	if s.Model.FromLocation != "" && !depot.IsAddress(s.Model.FromLocation) {
		if s.Model.FromLocation, err = filepath.Abs(s.Model.FromLocation); err != nil {
			return s, nil, err
		}
	}
	return s, words, nil
}

// fillData fills in the hash of the data if it was left open, and reports whether it did. words is
// the tokenizer of the checkpoint that the run starts from, nil if it is not known.
func fillData(s *spec.Spec, dataDir string, words tokenizer.Tokenizer) (bool, error) {
	if dataDir == "" {
		dataDir = s.Data.Location
	}
	if s.Data.Manifest != "" && dataDir == "" {
		return false, nil
	}
	if dataDir == "" {
		return false, errors.New("data.manifest and data.location are both empty: say where the prepared data is with --data DIR")
	}
	if data.IsURL(dataDir) {
		if s.Data.Manifest != "" {
			return false, nil // members compare the data there with the hash
		}
		return false, fmt.Errorf("data.manifest is empty, and %s is an address: name your copy of the data with --data DIR, or fill in the hash that entrain data show DIR prints", dataDir)
	}
	m, err := data.ReadManifest(dataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.Data.Manifest != "":
		return false, nil // the owner need not have the data
	case errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("data: %w; make a data set with: entrain data prepare -o DIR FILE", err)
	case err != nil:
		return false, fmt.Errorf("data: %w", err)
	case s.Data.Manifest != "" && s.Data.Manifest != m.Hash().String():
		return false, fmt.Errorf("data.manifest is %s, but the data set in %q has %s", s.Data.Manifest, dataDir, m.Hash())
	}
	ofData, _ := data.TokenizerOf(dataDir, m) // to tell how it differs, if it is there
	if err := trainer.SameTokenizer(*s, m, ofData, words); err != nil {
		return false, err
	}
	switch {
	case s.Data.Manifest != "":
		return false, nil
	case m.Tokens <= uint64(s.Data.Sequence):
		return false, fmt.Errorf("data set %q has %d tokens to train on, not enough for one sequence of %d", m.Name, m.Tokens, s.Data.Sequence)
	case int(m.Vocab) > s.Model.Vocab:
		return false, fmt.Errorf("data set %q has a vocabulary of %d, the model one of %d", m.Name, m.Vocab, s.Model.Vocab)
	}
	s.Data.Manifest = m.Hash().String()
	if s.Data.Location != "" && !data.IsURL(s.Data.Location) {
		if s.Data.Location, err = filepath.Abs(s.Data.Location); err != nil {
			return false, err
		}
	}
	return true, nil
}

// resume makes a run take up the training of the checkpoint that it starts from.
func (d Draft) resume(s *spec.Spec) error {
	if d.From == "" {
		return errors.New("say from which checkpoint with --from")
	}
	path, saved, err := model.OpenCheckpoint(d.From)
	if err != nil {
		return err
	}
	t, err := saved.Training()
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%q has no %s: it was not written by a member of a run at an epoch's end, or by one that did not know all results; "+
			"another member's may have it, or leave --resume out and begin with fresh optimizers", path, checkpoint.TrainingFile)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", path, err)
	}
	if err := sameTraining(*s, t); err != nil {
		return fmt.Errorf("the run that wrote %q %w; leave --resume out to begin with fresh optimizers", path, err)
	}
	s.Resume = &spec.Resume{Step: saved.Manifest.Step, Sequence: t.Sequence, States: map[string]string{}}
	for _, m := range t.States[:min(len(t.States), spec.ResumeStatesMax)] {
		s.Resume.States[m.Member.String()] = m.State.String()
	}
	if n := len(t.States) - spec.ResumeStatesMax; n > 0 && d.Say != nil {
		d.Say("the specification has room for the states of %d members; %d others begin afresh", spec.ResumeStatesMax, n)
	}
	return s.Check()
}

// sameTraining returns how a run differs from the one whose training it would take up, nil if it
// does not.
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
	case s.Optimizer.Kind().Name != t.Codec:
		return fmt.Errorf("had optimizer.codec = %q", t.Codec)
	case n != t.Optimizer:
		return fmt.Errorf("had %d numbers of optimizer state, this one has %d", t.Optimizer, n)
	}
	return nil
}

// Created names a run that was created.
type Created struct {
	Run       string     `json:"run"`
	Chain     string     `json:"chain"`
	Owner     key.Public `json:"owner"`
	ModelHash wire.Hash  `json:"model_hash"`
	SpecHash  wire.Hash  `json:"spec_hash"`
}

// Create publishes a run. It makes the initial parameters for their hash, unless the run starts
// from others. A run that the owner has created from the same text and that has not begun is that
// run: an owner that was cut off before the chain's answer calls Create again.
func Create(ctx context.Context, l ledger.Chain, owner key.Private, s spec.Spec, text []byte) (Created, error) {
	model, err := s.ModelHash()
	if err != nil {
		return Created{}, err
	}
	limits, config := s.Coordinator(owner.Public(), model, host.SpecHash(text))
	err = onchain.Submit(ctx, l.As(owner), host.CreateRun{Limits: limits, Config: config, Spec: text})
	if refused, ok := errors.AsType[*host.TxError](err); ok && refused.Code == host.CodeRunExists {
		if on, lost := onchain.GetSnapshot(ctx, l, s.Name); lost == nil && on.State.Epoch() == 0 {
			if c := on.State.Config(); c.Owner == config.Owner && c.SpecHash == config.SpecHash && c.ModelHash == config.ModelHash {
				err = nil
			}
		}
	}
	if err != nil {
		return Created{}, fmt.Errorf("create run %q on chain %q: %w", s.Name, l.ChainID(), err)
	}
	return Created{s.Name, l.ChainID(), owner.Public(), config.ModelHash, config.SpecHash}, nil
}

// Gives reports whether members can only have the model that the run begins with from its author.
func (d Draft) Gives(s spec.Spec) bool {
	return d.From != "" && s.Model.FromLocation == "" && !s.Buckets()
}

// Created returns how to take part in the run s of the draft, which was created on a chain.
func (d Draft) Created(s spec.Spec, chain string) []string {
	take := s.Name
	if !data.IsURL(s.Data.Location) {
		take += " --data " + view.Quote(cmp.Or(d.Data, s.Data.Location, "DIR"))
	}
	alone := d.From != "" && s.Model.FromLocation == "" && !d.Gives(s)
	if alone {
		take += " --from " + view.Quote(d.Address)
	}
	words := []string{fmt.Sprintf("created run %q on chain %q; take part in it with: entrain join %s", s.Name, chain, take)}
	switch {
	case alone && s.Model.LoRA != nil:
		words = append(words, "everybody who takes part needs the checkpoint: the run trains adapters of it")
	case alone:
		words = append(words, "others need no --from: they get the model from members' buckets, so it begins once one that has the checkpoint takes part")
	}
	if text := unfunded(s, 0); text != "" {
		words = append(words, text)
	}
	if needs, err := trainer.SizesOf(s); err == nil {
		if text := newLinks(s, needs, newAggregate(s, needs)).late(); text != "" {
			words = append(words, text)
		}
	}
	return words
}
