package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/entrain-network/entrain/serve"
)

// lineMost bounds the bytes of a line in a chat.
const lineMost = 1 << 20

func chatCommand(c console) *cobra.Command {
	return &cobra.Command{
		Use:   "chat CHECKPOINT",
		Short: "Converse with a model",
		Long: `Answers each line of the standard input with the model of a checkpoint directory, or of a
participant's state directory, whose newest checkpoint is used. The model reads the conversation so far, as
its chat_template.jinja writes it; "entrain model import" takes that from the model. The answers go to the
standard output.

A line "/new" begins another conversation. Ctrl-D ends.

` + aboutAddresses,
		Example: `  entrain model chat ./checkpoint
  entrain model chat hf://owner/my-run`,
		Args:              needCheckpoint,
		ValidArgsFunction: completeDirs,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, release, err := checkpointSource{}.local(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			defer release()
			m, err := serve.Open(dir)
			if err != nil {
				return err
			}
			talk, err := m.Talk()
			if err != nil {
				return fmt.Errorf("%q: %w", args[0], err)
			}
			return c.converse(cmd.Context(), talk)
		},
	}
}

// converse passes what the user says on to a model until the input or ctx ends.
func (c console) converse(ctx context.Context, talk *serve.Talk) error {
	ask := func() {}
	if f, ok := c.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		ask = func() { fmt.Fprint(c.err, "> ") }
	}
	lines := bufio.NewScanner(c.in)
	lines.Buffer(nil, lineMost)
	said := make(chan string) // Ctrl-C ends while a line is read
	go func() {
		defer close(said)
		for lines.Scan() {
			select {
			case said <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for ask(); ; ask() {
		text, more := "", false
		select {
		case text, more = <-said:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !more {
			return lines.Err()
		}
		switch text = strings.TrimSpace(text); text {
		case "":
		case "/new":
			talk.Forget()
		default:
			err := talk.Say(ctx, text, c.out)
			if errors.Is(err, serve.ErrTooLong) {
				c.say(`%v: "/new" begins another conversation`, err)
				continue
			}
			if err != nil {
				return err
			}
			if _, err := io.WriteString(c.out, "\n"); err != nil {
				return err
			}
		}
	}
}
