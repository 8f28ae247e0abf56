package main

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// An error about a number that is out of a flag's range names the flag as the user typed it,
// whichever package finds it. Flags that a command reads only when it has reached a chain or opened
// a model are not reached here, unless the command looks at them first, as it should.
func TestErrorsOfRangesNameTheFlag(t *testing.T) {
	signed := []string{"int", "int64", "float32", "float64", "duration"}
	tried := 0
	walk(newRoot(newShell(t).console), func(cmd *cobra.Command) {
		if !works(cmd) || cmd.Hidden {
			return
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if !slices.Contains(signed, f.Value.Type()) {
				return
			}
			value := "-1"
			if f.Value.Type() == "duration" {
				value = "-1h"
			}
			tried++
			t.Run(cmd.CommandPath()+" --"+f.Name, func(t *testing.T) {
				args := commandLine(t, cmd, "--"+f.Name, value)
				sh := newShell(t)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				err := run(ctx, sh.console, args)
				bare := regexp.MustCompile(`(^|[^-\w])` + f.Name + `:? ` + value + `|` + value + ` ` + f.Name)
				if err == nil || ctx.Err() != nil {
					t.Errorf("entrain %q takes it: %v", args, err)
				} else if bare.MatchString(err.Error()) {
					t.Errorf("entrain %q: %v", args, err)
				}
			})
		})
	})
	if tried < 20 {
		t.Errorf("%d flags were tried", tried)
	}
}

// commandLine returns a call of a command with a flag, and with as many arguments as it takes at
// least. What these name does not exist.
func commandLine(t *testing.T, cmd *cobra.Command, flag, value string) []string {
	var path []string
	for c := cmd; c.HasParent(); c = c.Parent() {
		path = slices.Insert(path, 0, c.Name())
	}
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	var args []string
	if cmd.Name() == "bench" { // without a model it measures what takes no flags
		args = []string{"nano"}
	}
	for cmd.ValidateArgs(args) != nil && len(args) < 4 {
		args = append(args, nowhere)
	}
	for name, text := range map[string]string{"chain": "http://127.0.0.1:1", "home": nowhere, "state": nowhere, "output": nowhere, "chain-id": "x", "data": nowhere} {
		if f := cmd.LocalFlags().Lookup(name); f != nil && (name != "data" || cmd.Name() == "host") && name != flag[2:] {
			args = append(args, "--"+name, text)
		}
	}
	return append(append(path, args...), flag, value)
}
