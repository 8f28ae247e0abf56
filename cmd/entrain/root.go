package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/participant"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// console is all that a command may touch of the process it runs in.
type console struct {
	in     io.Reader
	out    io.Writer // what was asked for, fit for a program to read
	err    io.Writer // words for people
	env    func(string) string
	places participant.Places
}

// say writes a line for people.
func (c console) say(format string, args ...any) { fmt.Fprintf(c.err, format+"\n", args...) }

// tell writes a text for people.
func (c console) tell(text string) { c.say("%s", text) }

// object writes one JSON object on a line of its own.
func (c console) object(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		panic("entrain: output has no JSON: " + err.Error())
	}
	_, err = c.out.Write(append(b, '\n'))
	return err
}

// print writes a value: as JSON for programs, or in words for people.
func (c console) print(asJSON bool, v any, words func(io.Writer) error) error {
	if asJSON {
		return c.object(v)
	}
	return words(c.out)
}

// announce tells that a server is ready: programs by an event, people in words.
func (c console) announce(asJSON bool, event any, format string, args ...any) error {
	if asJSON {
		return c.object(event)
	}
	c.say(format, args...)
	return nil
}

// printAll is print for a list, of which JSON has a line each.
func printAll[T any](c console, asJSON bool, list []T, words func(io.Writer, []T) error) error {
	if !asJSON {
		return words(c.out, list)
	}
	for _, v := range list {
		if err := c.object(v); err != nil {
			return err
		}
	}
	return nil
}

// between takes least to most arguments, and otherwise tells the user to say what.
func between(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("say %s: %s", what, cmd.UseLine())
		}
		return nil
	}
}

// noArgs takes flags alone.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q belongs to no flag: %s", args[0], cmd.UseLine())
	}
	return nil
}

// run executes the command that args name, and returns when everything that it started has ended.
func run(ctx context.Context, c console, args []string) error {
	root := newRoot(c)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
	return err
}

// groups are the headings in the help text, in their order, with the commands below each.
func groups(c console) []struct {
	id, title string
	commands  []*cobra.Command
} {
	return []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"start", "Start:", []*cobra.Command{demoCommand(c), benchCommand(c)}},
		{"part", "Take part:", []*cobra.Command{keyCommand(c), joinCommand(c), validateCommand(c), bucketCommand(c), relayCommand(c)}},
		{"look", "Look at a run:", []*cobra.Command{statusCommand(c), watchCommand(c), webCommand(c), auditCommand(c), reportCommand(c)}},
		{"own", "Own a run:", []*cobra.Command{hostCommand(c), runCommand(c)}},
		{"money", "Money:", []*cobra.Command{walletCommand(c), poolCommand(c)}},
		{"models", "Models:", []*cobra.Command{modelCommand(c)}},
		{"data", "Data:", []*cobra.Command{dataCommand(c)}},
		{"chain", "Chain:", []*cobra.Command{chainCommand(c), bittensorCommand(c)}},
		{"more", "More:", []*cobra.Command{versionCommand(c)}},
	}
}

func newRoot(c console) *cobra.Command {
	root := &cobra.Command{
		Use:   "entrain",
		Short: "Train one language model on many strangers' machines",
		Long: `entrain trains one language model on many machines whose owners need not trust each other.

A coordinator, replicated on a chain, decides who takes part, who trains on what and which
results enter the model. Every result can be computed again by anyone, bit for bit.

Begin with "entrain demo": a whole network on this machine, in a few minutes.`,
		Example: "  entrain demo\n  entrain join my-run@203.0.113.5 --data ./corpus",
		// A template of its own would link text/template, and with it 13 MB of methods.
		Version:       strings.TrimPrefix(version().String(), "entrain "),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          onlyCommands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
			return onlyCommands(cmd, args) // a mistyped command hides the flags of the meant one
		}
		if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			why, number := bad.Unwrap().Error(), new(strconv.NumError)
			if errors.As(bad.Unwrap(), &number) {
				why = "want a number in the range of the flag"
			}
			err = fmt.Errorf("--%s %q: %s", bad.GetFlag().Name, bad.GetValue(), why)
		}
		return fmt.Errorf("%w%s; see %q", err, similarFlag(cmd, err), cmd.CommandPath()+" --help")
	})
	withParent := root.PersistentFlags().Bool("with-parent", false, "end when standard input closes, as it does when the parent process ends")
	_ = root.PersistentFlags().MarkHidden("with-parent")
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		if *withParent {
			cmd.SetContext(untilClosed(cmd.Context(), c.in))
		}
	}
	for _, g := range groups(c) {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID("more")
	root.SetCompletionCommandGroupID("more")
	return root
}

// errParentEnded ends a command with --with-parent, like an interrupt.
var errParentEnded = fmt.Errorf("standard input closed: %w", context.Canceled)

// untilClosed returns a context that ends when in is closed. The goroutine that waits for that ends
// with the process.
func untilClosed(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel(errParentEnded)
	}()
	return ctx
}

// group makes a command that only holds others.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// onlyCommands refuses arguments of a command that only holds others, and suggests the ones meant.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := ""
	if names := cmd.SuggestionsFor(args[0]); len(names) > 0 {
		hint = fmt.Sprintf("; did you mean %q?", cmd.CommandPath()+" "+names[0])
	}
	for _, group := range cmd.Commands() { // such as import, which is model import
		if found, _, err := group.Find(args[:1]); err == nil && found != group {
			hint = fmt.Sprintf("; did you mean %q?", found.CommandPath())
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), hint)
}

// similarFlag suggests a flag in place of an unknown one, if one is spelled nearly the same. Cobra
// compares names of commands, so the flags stand as commands.
func similarFlag(cmd *cobra.Command, err error) string {
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || len(missing.GetSpecifiedName()) < 3 {
		return ""
	}
	flags := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	if names := flags.SuggestionsFor(missing.GetSpecifiedName()); len(names) > 0 {
		return fmt.Sprintf("; did you mean --%s?", names[0])
	}
	return ""
}
