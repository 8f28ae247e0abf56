package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/checkpoint/gguf"
	"github.com/entrain-network/entrain/model"
)

// hfBF16 is the value of --type that makes a checkpoint in BF16.
const hfBF16 = "hf-bf16"

func exportCommand(c console) *cobra.Command {
	var out, typeName string
	var from checkpointSource
	cmd := &cobra.Command{
		Use:   "export CHECKPOINT -o FILE",
		Short: "Write a model as a GGUF file, or in BF16",
		Long: `Writes the model of a checkpoint directory, or of a participant's state directory, whose newest checkpoint is
used, as one GGUF file: the format of llama.cpp and of what is built on it. Checkpoints themselves are in the
layout of Hugging Face and need no export for transformers, vLLM and others that read it; with --type hf-bf16
the result is such a directory of half the size.

` + aboutAddresses,
		Example: `  entrain model export ./checkpoint -o model.gguf
  entrain model export ./state -o model-q8.gguf --type q8_0
  entrain model export "hf://owner/my-run?revision=step-000300" -o model.gguf`,
		Args:              needCheckpoint,
		ValidArgsFunction: completeDirs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("say where the file goes with -o FILE")
			}
			typ, err := gguf.ParseType(strings.ToLower(typeName))
			if err != nil && typeName != hfBF16 {
				return fmt.Errorf("--type: %w, or %s", err, hfBF16)
			}
			if _, err := os.Stat(out); err == nil {
				return fmt.Errorf("%q exists; remove it, or choose another file", out)
			}
			dir, release, err := from.local(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			defer release()
			saved, err := model.Open(dir)
			if err != nil {
				return err
			}
			if typeName == hfBF16 {
				return model.WriteBF16(cmd.Context(), out, saved)
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
			fmt.Fprintf(c.out, "%s: %d parameters of %s as %s, %d bytes\n", out, len(m.Params), saved.Dir, typ, info.Size())
			return nil
		},
	}
	from.flags(cmd)
	f := cmd.Flags()
	outputFlag(cmd, &out, "file")
	f.StringVar(&typeName, "type", "f16", "how matrices are held: f32 (exactly the model), f16, bf16 or q8_0; hf-bf16 makes a directory for transformers")
	return cmd
}
