package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/tokenizer"
)

func importCommand(c console) *cobra.Command {
	var out, name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import DIR -o CHECKPOINT",
		Short: "Make a checkpoint of a Llama from elsewhere",
		Long: `Reads a Llama in the layout of Hugging Face (config.json, safetensors, tokenizer.json) and writes it as a
checkpoint, with a manifest: to continue training it, to generate with it, to score or to export it.

Weights of type BF16, F16 and F32 become float32, which loses nothing. The hash that is printed is that of the
parameters; a run that goes on from them has it in its specification. The tokenizer.json is taken as it is.

What entrain cannot compute is refused, and named: other architectures than Llama, biases, scaled rotary
embeddings, sliding windows, quantized weights, tokenizers that are no byte-level BPE.

To continue training: prepare data with the model's own tokenizer, and create a run from the checkpoint.`,
		Example: `  entrain import ./SmolLM2-135M -o ./smol
  entrain import ./model -o ./checkpoint --name my-llama --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("say one directory with a model: %s", cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: completeDirs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("say where the checkpoint goes: -o DIR, which must not exist")
			}
			m, err := importModel(args[0], name)
			if err != nil {
				return err
			}
			manifest, err := writeModel(cmd.Context(), out, m)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%w; choose another place, or remove it", err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return c.object(struct {
					Checkpoint string `json:"checkpoint"`
					Params     string `json:"params"`
					Manifest   string `json:"manifest"`
					Tokenizer  string `json:"tokenizer"`
					Count      int    `json:"parameters"`
				}{out, manifest.Params.String(), manifest.Hash().String(), m.Tokenizer.Hash().String(), len(m.Params)})
			}
			c.say("%s: %s parameters, tokenizer %s; their hash is", out, thousands(uint64(len(m.Params))), m.Tokenizer.Name())
			fmt.Fprintln(c.out, manifest.Params)
			c.say(`continue training it with: entrain data prepare -o DATA --tokenizer %q FILE...
                           entrain run create -f run.toml --from %q --data DATA`, filepath.Join(out, checkpoint.TokenizerFile), out)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "out", "o", "", "`directory` to make")
	f.StringVar(&name, "name", "", "what the model is `called` (default: as the directory)")
	f.BoolVar(&asJSON, "json", false, "print a JSON object")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// importModel reads the model in a directory of Hugging Face's layout that has no manifest of ours.
func importModel(dir, name string) (checkpoint.Model, error) {
	fault := func(err error) (checkpoint.Model, error) { return checkpoint.Model{}, fmt.Errorf("%q: %w", dir, err) }
	if _, err := os.Stat(filepath.Join(dir, checkpoint.ManifestFile)); err == nil {
		return fault(fmt.Errorf("it has a %s, as a checkpoint of entrain does: that needs no import, commands take it as it is", checkpoint.ManifestFile))
	}
	saved, err := checkpoint.Import(os.DirFS(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return fault(fmt.Errorf("%w; a model to import is a directory with %s, %s and %s", err, checkpoint.ConfigFile, checkpoint.WeightsFile, checkpoint.TokenizerFile))
	}
	if err != nil {
		return fault(err)
	}
	config := llamaConfig(saved.Config)
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
	if m.Config.EOS == nil {
		end := words.End()
		m.Config.EOS = &end
	}
	whole, err := filepath.Abs(dir)
	if err != nil {
		return fault(err)
	}
	if name == "" {
		m.Run = plainName(filepath.Base(whole))
		m.Run = m.Run[:min(len(m.Run), checkpoint.RunBytesMax)]
	}
	m.Card.Facts = []checkpoint.Fact{{Name: "imported from", Value: filepath.Base(whole)}}
	if err := saved.Params(m.Layout, m.Params); err != nil {
		return fault(err)
	}
	return m, nil
}

// writeModel makes a directory of a model, in float32.
func writeModel(ctx context.Context, dir string, m checkpoint.Model) (manifest checkpoint.Manifest, err error) {
	err = atomicfile.WriteDir(ctx, dir, func(create atomicfile.Create) error {
		manifest, err = checkpoint.Write(create, m, checkpoint.Options{})
		return err
	})
	return manifest, err
}
