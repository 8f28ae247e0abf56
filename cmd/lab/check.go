package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/lab/check"
)

// checkCommand visits all states of tiny runs.
func checkCommand(c console) *cobra.Command {
	o := check.Options{Members: 4, Depth: 8, States: 200_000, Seed: 1}
	var scene string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Visit every state of tiny runs",
		Long: `Explores the coordinator's rules exhaustively: three or four members, some of which cheat, send every
message that they may send in every order, and time passes in between. After each message the command
checks what must always hold. It prints the number of different states, and the shortest list of
messages that breaks a property, if there is one. The exit status is then 1.

` + scenesText(),
		Example: "  lab check\n  lab check --scene liar --depth 12 --states 2000000\n  lab check --members 3 --depth 10",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Depth < 1 || o.States < 1 {
				return fmt.Errorf("--depth and --states must be at least 1")
			}
			scenes := []string{scene}
			if scene == "" {
				scenes = nil
				for _, s := range check.Scenes {
					scenes = append(scenes, s.Name)
				}
			}
			found := 0
			if _, err := fmt.Fprintf(c.out, "%-8s %7s %6s %9s %11s %9s\n", "scene", "members", "depth", "states", "messages", "refused"); err != nil {
				return err
			}
			for _, o.Scene = range scenes {
				start := time.Now()
				r, err := check.Run(cmd.Context(), o)
				if err != nil {
					return err
				}
				c.say("%s took %v", o.Scene, time.Since(start).Round(time.Second))
				if r.Violation != nil {
					found++
				}
				if err := c.explored(r); err != nil {
					return err
				}
			}
			if found > 0 {
				return fmt.Errorf("%d of %d scenes break a property", found, len(scenes))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&scene, "scene", "", "`name` of the one scene to explore (default: all)")
	f.IntVar(&o.Members, "members", o.Members, fmt.Sprintf("keys, %d to %d", check.MembersMin, check.MembersMax))
	f.IntVar(&o.Depth, "depth", o.Depth, "longest list of messages")
	f.IntVar(&o.States, "states", o.States, "stop a scene after this many states")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the chance of all blocks")
	return cmd
}

func scenesText() string {
	text := "Scenes:\n"
	for _, s := range check.Scenes {
		text += fmt.Sprintf("  %-8s %s\n", s.Name, s.Text)
	}
	text += "\nProperties:\n"
	for _, p := range check.Properties {
		text += fmt.Sprintf("  %-12s  %s\n", p.Name, p.Text)
	}
	return text + `  refusals      a refused message leaves the state as it was
  no panic      no message makes the rules panic`
}

// explored prints what was found in a scene.
func (c console) explored(r check.Result) error {
	depth := fmt.Sprint(r.Depth)
	if r.Complete {
		depth += " all"
	}
	_, err := fmt.Fprintf(c.out, "%-8s %7d %6s %9d %11d %9d\n", r.Scene, r.Members, depth, r.States, r.Transitions, r.Refused)
	if err != nil || r.Violation == nil {
		return err
	}
	if _, err := fmt.Fprintf(c.out, "FOUND %q does not hold: %s\n", r.Violation.Property, r.Violation.Text); err != nil {
		return err
	}
	for _, line := range r.Violation.Script {
		if _, err := fmt.Fprintln(c.out, line); err != nil {
			return err
		}
	}
	return nil
}
