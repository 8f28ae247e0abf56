package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/tui"
)

func chatCommand(c console) *cobra.Command {
	var on model.Machine
	cmd := &cobra.Command{
		Use:   "chat CHECKPOINT",
		Short: "Converse with a model",
		Long: `Answers each line of the standard input with the model of a checkpoint directory, or of a
participant's state directory, whose newest checkpoint is used. The model reads the conversation so far, as
its chat_template.jinja writes it; "entrain model import" takes that from the model. The answers go to the
standard output.

A line "/new" begins another conversation. Ctrl-D ends.

` + aboutAddresses,
		Example: `  entrain model chat ./checkpoint
  entrain model chat hf://owner/my-run --device auto`,
		Args:              needCheckpoint,
		ValidArgsFunction: completeDirs,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, release, err := checkpointSource{}.open(cmd.Context(), c, args[0], on)
			if err != nil {
				return err
			}
			defer release()
			talk, err := m.Talk()
			if err != nil {
				return fmt.Errorf("%q: %w", args[0], err)
			}
			prompt := ""
			if f, ok := c.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
				prompt = "> "
			}
			return talk.Converse(cmd.Context(), c.in, tui.Shown(c.out), c.err, prompt)
		},
	}
	textDeviceFlag(cmd, &on.Device)
	return cmd
}
