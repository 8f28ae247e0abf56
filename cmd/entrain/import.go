package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/view"
)

func importCommand(c console) *cobra.Command {
	var out, name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import MODEL -o CHECKPOINT",
		Short: "Make a checkpoint of a model from elsewhere",
		Long: `Reads a Llama, Mistral, Phi-3, Qwen2, Qwen3, Granite, ERNIE 4.5, Helium or Seed-OSS in the layout of Hugging
Face (config.json, safetensors, tokenizer.json) and writes it as a checkpoint, with a manifest: to continue
training it, to generate with it, to score or to export it. What Llama lacks goes into the weights: a Granite
becomes a Llama whose embeddings, projections and last norm have its multipliers.

Weights of type BF16, F16 and F32 become float32, which loses nothing. The hash that is printed is that of the
parameters; a run that goes on from them has it in its specification. The tokenizer.json is taken as it is.

What entrain cannot compute is refused, and named: other architectures, rotary embeddings scaled otherwise
than by one factor or as in Llama 3, windows in some layers only, quantized weights, tokenizers other than
BPE of bytes or, as in Llama 2 and Mistral, of characters with bytes to fall back to.

The model may be on a hub: hf://owner/name, at HF_ENDPOINT if that is set, or hf://host/owner/name; and
at https:// and s3:// addresses of directories. HF_TOKEN goes to HF_ENDPOINT alone. Nothing vouches for
the weights but the server: compare the hash that is printed with one that you trust.

To continue training: prepare data with the model's own tokenizer, and create a run from the checkpoint.`,
		Example: `  entrain model import ./SmolLM2-135M -o ./smol
  entrain model import hf://HuggingFaceTB/SmolLM2-135M -o ./smol
  entrain model import ./model -o ./checkpoint --name my-llama --json`,
		Args:              between(1, 1, "one directory with a model"),
		ValidArgsFunction: completeDirs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("say where the checkpoint goes with -o DIR, which must not exist")
			}
			f, err := c.fetcher(args[0])
			if err != nil {
				return err
			}
			m, err := f.Import(cmd.Context(), args[0], name)
			if err != nil {
				return err
			}
			manifest, err := model.Write(cmd.Context(), out, m, checkpoint.Options{})
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
			c.say("%s: %s parameters, tokenizer %s; their hash is", out, view.Thousands(uint64(len(m.Params))), m.Tokenizer.Name())
			fmt.Fprintln(c.out, manifest.Params)
			c.say(`train it further, with others or, where "min" of "[members]" is 1, alone:
  entrain host -f run.toml --from %q --data FILE`, out)
			return nil
		},
	}
	f := cmd.Flags()
	outputFlag(cmd, &out, "checkpoint")
	f.StringVar(&name, "name", "", "`name` of the model (default: the directory's)")
	jsonFlag(cmd, &asJSON)
	return cmd
}
