package model

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/checkpoint/gguf"
	"github.com/entrain-network/entrain/data"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/tokenizer/chat"
)

// onHub matches the name of a model on a hub.
var onHub = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[\w.-]+$`)

// Import reads a model from a directory in Hugging Face's layout that is not one of our
// checkpoints.
func Import(dir, name string) (checkpoint.Model, error) {
	fault := func(err error) (checkpoint.Model, error) { return checkpoint.Model{}, fmt.Errorf("%q: %w", dir, err) }
	if _, err := os.Stat(filepath.Join(dir, checkpoint.ManifestFile)); err == nil {
		return fault(fmt.Errorf("it has a %s, as a checkpoint of entrain does: that needs no import, commands take it as it is", checkpoint.ManifestFile))
	}
	saved, err := checkpoint.Import(os.DirFS(dir))
	if _, missing := os.Stat(dir); errors.Is(missing, fs.ErrNotExist) && onHub.MatchString(dir) {
		return fault(fmt.Errorf("%w; a model on a hub is named hf://%s", missing, dir))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fault(fmt.Errorf("%w; a model to import is a directory with %s, %s and %s", err, checkpoint.ConfigFile, checkpoint.WeightsFile, checkpoint.TokenizerFile))
	}
	if err != nil {
		return fault(err)
	}
	config := LlamaConfig(saved.Config)
	if err := config.Check(); err != nil {
		return fault(fmt.Errorf("a model that entrain does not train: %w", err))
	}
	text, err := saved.File(checkpoint.TokenizerFile, tokenizer.JSONBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return fault(fmt.Errorf("%w; AutoTokenizer of transformers writes it: from_pretrained(DIR, use_fast=True).save_pretrained(DIR)", err))
	}
	if err != nil {
		return fault(err)
	}
	words, err := tokenizer.Parse(text)
	if err != nil {
		return fault(err)
	}
	m := checkpoint.Model{Run: name, Config: saved.Config, Tokenizer: words, Layout: config.Layout(), Params: make([]float32, config.Layout().Len())}
	tokens, errTokens := saved.File(checkpoint.TokenizerConfigFile, tokenizer.JSONBytesMax)
	template, errTemplate := saved.File(checkpoint.ChatFile, checkpoint.ChatBytesMax)
	for _, err := range []error{errTokens, errTemplate} {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault(err)
		}
	}
	if m.Chat, err = chat.Source(template, tokens); err != nil {
		return fault(err)
	}
	// Files of other programs may have one token only: of several, the one that ends an answer.
	if end := chat.End(m.Chat, words); m.Config.EOS == nil || m.Chat != "" && slices.Contains(saved.Ends, end) {
		m.Config.EOS = &end
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return fault(err)
	}
	if name == "" {
		m.Run = data.PlainName(filepath.Base(whole))
		m.Run = m.Run[:min(len(m.Run), checkpoint.RunBytesMax)]
	}
	m.Card.Facts = []checkpoint.Fact{{Name: checkpoint.ImportedFrom, Value: filepath.Base(whole)}}
	if err := saved.Params(m.Layout, m.Params); err != nil {
		return fault(err)
	}
	for _, t := range m.Layout.Tensors() {
		for _, v := range t.Of(m.Params) {
			if v-v != 0 {
				return fault(fmt.Errorf("tensor %q has an element that is %v: the model is damaged, or was trained until it broke", t.Name, v))
			}
		}
	}
	return m, nil
}

// Write writes a checkpoint of a model.
func Write(ctx context.Context, dir string, m checkpoint.Model, o checkpoint.Options) (manifest checkpoint.Manifest, err error) {
	err = atomicfile.WriteDir(ctx, dir, func(create atomicfile.Create) error {
		manifest, err = checkpoint.Write(create, m, o)
		return err
	})
	return manifest, err
}

// WriteAs writes a model as a checkpoint whose weights have a type: all of them, if m was merged.
func WriteAs(ctx context.Context, dir string, m Model, dtype checkpoint.DType) error {
	words, err := m.Tokenizer()
	if err != nil {
		return err
	}
	from := m.Saved.Manifest
	template, err := m.Saved.Chat()
	if err != nil {
		return err
	}
	made := checkpoint.Model{
		Run: from.Run, Epoch: from.Epoch, Round: from.Round, Step: from.Step,
		Config: m.Saved.Config, Tokenizer: words, Layout: m.Config.Layout(), Params: m.Params, Chat: template,
	}
	if made.Card, err = m.Saved.Card(); err != nil {
		return err
	}
	if m.Merged {
		made.Card.Facts = append(made.Card.Facts, checkpoint.Fact{Name: checkpoint.MergedWith, Value: from.Params.String()})
	}
	_, err = Write(ctx, dir, made, checkpoint.Options{DType: dtype})
	return err
}

// GGUF returns a model as package gguf writes it.
func GGUF(m Model) (gguf.Model, error) {
	text, err := m.Saved.File(checkpoint.TokenizerFile, tokenizer.JSONBytesMax)
	if err != nil {
		return gguf.Model{}, fmt.Errorf("checkpoint %q: %w", m.Dir, err)
	}
	template, err := m.Saved.Chat()
	if err != nil {
		return gguf.Model{}, fmt.Errorf("checkpoint %q: %w", m.Dir, err)
	}
	return gguf.Model{Name: m.Saved.Manifest.Run, Config: m.Saved.Config, Layout: m.Config.Layout(), Params: m.Params, Tokenizer: text, Chat: template}, nil
}
