package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/checkpoint/gguf"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/view"
)

// directories are the values of --type that make a checkpoint.
var directories = map[string]checkpoint.DType{"hf-bf16": checkpoint.BF16, "hf-f32": checkpoint.F32}

func exportCommand(c console) *cobra.Command {
	var out, typeName, base string
	var from checkpointSource
	cmd := &cobra.Command{
		Use:   "export CHECKPOINT -o FILE",
		Short: "Write a model as a GGUF file, in BF16, or merged",
		Long: `Writes the model of a checkpoint directory, or of a participant's state directory, whose newest checkpoint is
used, as one GGUF file: the format of llama.cpp and of what is built on it. Checkpoints themselves are in the
layout of Hugging Face and need no export for transformers, vLLM and others that read it; with --type hf-bf16
the result is such a directory of half the size.

Adapters are merged into the model that they belong to. Where it is not known, --base says where. With
--type hf-f32 the result is a directory with the merged model. A checkpoint of adapters is in the layout of
PEFT and needs no export for programs that read it.

` + aboutAddresses,
		Example: `  entrain model export ./checkpoint -o model.gguf
  entrain model export ./state -o model-q8.gguf --type q8_0
  entrain model export ./state -o merged --type hf-f32
  entrain model export "hf://owner/my-run?revision=step-000300" -o model.gguf`,
		Args:              needCheckpoint,
		ValidArgsFunction: completeDirs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("say where the file goes with -o FILE")
			}
			dtype, isDir := directories[typeName]
			typ, err := gguf.ParseType(strings.ToLower(typeName))
			if err != nil && !isDir {
				return fmt.Errorf("--%w; hf-bf16 and hf-f32 make a directory; a checkpoint of adapters is in the layout of PEFT as it is", err)
			}
			if _, err := os.Stat(out); err == nil {
				return fmt.Errorf("%q exists; remove it, or choose another file", out)
			}
			dir, release, err := from.local(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			defer release()
			saved, err := model.OpenOn(dir, base)
			if err != nil {
				return err
			}
			if isDir {
				c.say("writing %s as %s to %s", saved.Dir, typeName, out)
				return model.WriteAs(cmd.Context(), out, saved, dtype)
			}
			m, err := model.GGUF(saved)
			if err != nil {
				return err
			}
			if err := atomicfile.Write(out, 0o644, func(w io.Writer) error { return gguf.Write(w, m, typ) }); err != nil {
				return err
			}
			info, err := os.Stat(out)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "%s: %s as %s, %s parameters, %s\n", out, saved.Dir, typ, view.Thousands(uint64(len(m.Params))), view.Bytes(uint64(info.Size())))
			return nil
		},
	}
	from.flags(cmd)
	f := cmd.Flags()
	outputFlag(cmd, &out, "file")
	f.StringVar(&typeName, "type", "f16", "`type` of the numbers in matrices: f32 (exactly the model), f16, bf16 or q8_0; hf-bf16 and hf-f32 make a directory for transformers")
	f.StringVar(&base, "base", "", "`directory` of the model that the adapters belong to")
	return cmd
}
