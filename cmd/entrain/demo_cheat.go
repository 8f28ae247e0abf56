package main

import (
	"fmt"

	"github.com/spf13/cobra"

	demopkg "github.com/entrain-network/entrain/demo"
	"github.com/entrain-network/entrain/key"
)

// demoCheatCommand is join for a client of the demo that cheats. The demo alone starts it.
func demoCheatCommand(c console) *cobra.Command {
	var o joinOptions
	var cheat demopkg.Cheat
	var gang []string
	cmd := joinWith(c, &o)
	cmd.Use, cmd.Short, cmd.Example, cmd.Hidden = "cheat RUN", "Take part in a demo as a cheat", "", true
	f := cmd.Flags()
	f.StringVar(&cheat.Kind, "adversary", "", "cheat in the way of this `kind`")
	f.StringArrayVar(&gang, "gang", nil, "public `key` of one that cheats together with this one; may be repeated")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		for _, s := range gang {
			k, err := key.ParsePublic(s)
			if err != nil {
				return fmt.Errorf("--gang %q: %w", s, err)
			}
			cheat.Gang = append(cheat.Gang, k)
		}
		o.Wrap = cheat.Wrap
		return nil
	}
	return cmd
}
