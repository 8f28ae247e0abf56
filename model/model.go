package model

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// CheckpointConfig returns a model's shape as a checkpoint's config.json has it. The frozen model
// of adapters is left to the caller.
func CheckpointConfig(m llama.Config) checkpoint.Config {
	numerics := ""
	if m.Numerics != llama.Exact {
		numerics = m.Numerics.String()
	}
	var lora *checkpoint.LoRA
	if m.LoRA != (llama.LoRA{}) {
		lora = &checkpoint.LoRA{Rank: m.LoRA.Rank, Alpha: float64(m.LoRA.Alpha), Targets: m.LoRA.Targets.Names()}
	}
	return checkpoint.Config{
		LoRA:  lora,
		Vocab: m.Vocab, Hidden: m.Hidden, Layers: m.Layers, Heads: m.Heads, KVHeads: m.KVHeads, HeadDim: m.HeadDim,
		FFN: m.FFN, Context: m.Context, Theta: m.Theta, Eps: m.Eps, Tied: m.Tied,
		Bias: m.Bias, QKNorm: m.QKNorm, Window: m.Window, Rope: checkpoint.Rope(m.Rope), Numerics: numerics,
	}
}

// LlamaConfig is the inverse of CheckpointConfig.
func LlamaConfig(c checkpoint.Config) llama.Config {
	numerics, _ := llama.ParseNumerics(c.Numerics) // ParseConfig knows the names too
	var lora llama.LoRA
	if c.LoRA != nil {
		// Config.Check finds a set without matrices.
		lora, _ = llama.NewLoRA(c.LoRA.Rank, c.LoRA.Alpha, c.LoRA.Targets)
	}
	return llama.Config{
		LoRA:  lora,
		Vocab: c.Vocab, Hidden: c.Hidden, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim,
		FFN: c.FFN, Context: c.Context, Theta: c.Theta, Eps: c.Eps, Tied: c.Tied,
		Bias: c.Bias, QKNorm: c.QKNorm, Window: c.Window, Rope: llama.Rope(c.Rope), Numerics: numerics,
	}
}

// Model is a model read from a checkpoint.
type Model struct {
	Dir    string // the checkpoint's
	Saved  *checkpoint.Saved
	Config llama.Config
	Params []float32
	Merged bool // Params are those of a frozen model with the checkpoint's adapters
}

// OpenCheckpoint opens a checkpoint directory, or the newest checkpoint of a state directory.
func OpenCheckpoint(dir string) (path string, saved *checkpoint.Saved, err error) {
	newest, err := Dir(filepath.Join(dir, CheckpointsDir)).newest()
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
		if _, missing := os.Stat(filepath.Join(dir, "spec.toml")); missing == nil {
			return "", nil, fmt.Errorf("the state directory %q has no checkpoint yet: the first is written when an epoch ends", dir)
		}
		return "", nil, fmt.Errorf("%w; %q is not a checkpoint of entrain: a checkpoint is a directory with %s, or a run's name", err, dir, checkpoint.ManifestFile)
	}
	return dir, saved, nil
}

// Open reads the model of a checkpoint directory, or of the newest checkpoint of a state directory.
// Adapters are merged into the frozen model, which must be at the place that the state directory or
// the checkpoint names.
func Open(dir string) (Model, error) { return OpenOn(dir, "") }

// OpenOn is Open for adapters whose frozen model is the checkpoint base, unless that is "".
func OpenOn(dir, base string) (Model, error) {
	dir, saved, err := OpenCheckpoint(dir)
	if err != nil {
		return Model{}, err
	}
	m, err := read(dir, saved)
	switch {
	case err != nil:
		return m, err
	case saved.Config.LoRA != nil:
		return m.onBase(base)
	case base != "":
		return m, fmt.Errorf("%q holds a whole model, not adapters of %q", dir, base)
	}
	return m, nil
}

// read reads the weights of a checkpoint, adapters as they are.
func read(dir string, saved *checkpoint.Saved) (Model, error) {
	m := Model{Dir: dir, Saved: saved}
	m.Config = LlamaConfig(m.Saved.Config)
	if err := m.Config.Check(); err != nil {
		return Model{}, fmt.Errorf("checkpoint %q: %w", dir, err)
	}
	layout := m.Config.Layout()
	m.Params = exact.Make[float32](layout.Len())
	if err := m.Saved.Params(layout, m.Params); err != nil {
		return Model{}, fmt.Errorf("checkpoint %q: %w", dir, err)
	}
	return m, nil
}

// Tokenizer reads the checkpoint's tokenizer.
func (m Model) Tokenizer() (tokenizer.Tokenizer, error) {
	text, err := m.Saved.File(checkpoint.TokenizerFile, tokenizer.JSONBytesMax)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %q: %w", m.Dir, err)
	}
	t, err := tokenizer.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %q: %w", m.Dir, err)
	}
	return t, nil
}

// Hash returns the hash of the parameters that were read. If the files hold BF16 it differs from
// the manifest's, which is the hash before rounding.
func (m Model) Hash() wire.Hash { return merkle.BlobRoot(tensor.Bytes(m.Params)) }
