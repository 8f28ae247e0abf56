package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/tui"
)

func generateCommand(c console) *cobra.Command {
	var prompt, seed, device string
	var tokens int
	g := model.Generator{}
	var from checkpointSource
	cmd := &cobra.Command{
		Use:   "generate CHECKPOINT",
		Short: "Generate text with a model",
		Long: `Continues a prompt with the model of a checkpoint directory, or of a participant's state directory, whose
newest checkpoint is used. The files are compared with the checkpoint's manifest as they are read.

` + aboutAddresses + `

The prompt is cut into tokens by the checkpoint's tokenizer.json. What spells a special token in it, such as
<|endoftext|>, is text like any other, unless --special is given.`,
		Example: `  entrain model generate ./checkpoint --prompt "The rays of light "
  entrain model generate ./checkpoint --prompt "Qu. 31. " --tokens 1000 --temperature 0.5 --seed 7
  entrain model generate ./checkpoint --prompt "Qu. 31. " --seed 7 --device auto
  entrain model generate s3://minio.example.org/models/my-run --prompt "Once"`,
		Args:              needCheckpoint,
		ValidArgsFunction: completeDirs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if tokens < 1 {
				return fmt.Errorf("--tokens %d: want at least 1", tokens)
			}
			if err := g.Sampling.Check(); err != nil {
				return fmt.Errorf("--%w", err)
			}
			dir, release, err := from.local(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			defer release()
			free, err := g.Begin(dir, device, seed, c.tell)
			if err != nil {
				return err
			}
			defer free()
			fmt.Fprint(c.out, prompt)
			_, err = g.Text(cmd.Context(), prompt, tokens, tui.Shown(c.out))
			fmt.Fprintln(c.out)
			return err
		},
	}
	from.flags(cmd)
	textDeviceFlag(cmd, &device)
	f := cmd.Flags()
	f.StringVar(&prompt, "prompt", "", "`text` to continue")
	f.IntVar(&tokens, "tokens", 400, "`number` of tokens to write")
	f.Float32Var(&g.Sampling.Temperature, "temperature", 0.8, "`temperature`: 0 always takes the likeliest token, 1 draws as the model says")
	f.IntVar(&g.Sampling.TopK, "top-k", 40, "draw among the `K` likeliest tokens; 0: all")
	f.BoolVar(&g.Special, "special", false, "special tokens that the prompt spells out are what they say")
	f.StringVar(&seed, "seed", "", "any `text`; the same seed gives the same text (default: another each time)")
	return cmd
}
