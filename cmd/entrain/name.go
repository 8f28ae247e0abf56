package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/report"
	"github.com/entrain-network/entrain/tui"
	"github.com/entrain-network/entrain/view"
)

func keyNameCommand(c console) *cobra.Command {
	var a acting
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "name [NAME [TEAM]]",
		Short: "Choose the name and the team that pages show for your key, or list all names",
		Long: `Gives your key a name on the chain, and a team if you name one, in place of those that it has. Pages,
windows and reports show them beside your key, with a picture drawn from both. An empty name, "", takes
both away. Without NAME it lists the names on the chain.

Names and teams have 2 to 24 of a-z, 0-9 and inner '-'. Each is unique on the chain, and so is what it
looks like: alice, a1ice and al-ice are one. Anyone may join a team. Your key needs a part in a run or
tokens: join first. When it has neither any more, the name is free again.

A name is no proof of who somebody is: compare keys.`,
		Example: "  entrain key name alice\n  entrain key name alice night-owls\n  entrain key name",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.connected(cmd.Context(), a.chain, func(client ledger.Chain) error {
					list, err := client.Names(cmd.Context())
					if err != nil {
						return err
					}
					return c.print(asJSON, list, func(w io.Writer) error { return report.Names(w, list) })
				})
			}
			s := host.SetName{Name: args[0]}
			if len(args) == 2 {
				s.Team = args[1]
			}
			if s.Name == "" {
				if s.Team != "" {
					return errors.New("a member of a team has a name: entrain key name NAME TEAM")
				}
				return c.send(cmd.Context(), a, s, "give up a name", "your key has no name on this chain")
			}
			for _, name := range args {
				if !host.NameValid(name) && name != "" {
					return fmt.Errorf("%q: want 2 to %d of a-z, 0-9 and inner '-', and not only digits", name, host.NameBytesMax)
				}
			}
			done := fmt.Sprintf("your key is called %s on this chain", s.Name)
			if s.Team != "" {
				done += ", of team " + s.Team
			}
			err := c.act(cmd.Context(), a, func(client ledger.Chain, self key.Public) (_ host.Body, err error) {
				s.Run, err = onchain.PartOf(cmd.Context(), client, self)
				return s, err
			})
			if err != nil {
				return fmt.Errorf("take the name %q: %w", s.Name, err)
			}
			c.say("%s", done)
			return nil
		},
	}
	a.flags(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// namesFor bounds the wait for names, which a view can do without.
const namesFor = 5 * time.Second

// keepNames tells a window what keys are called, again and again until ctx ends.
func keepNames(ctx context.Context, client ledger.Chain, window *tui.Window) {
	timer := time.NewTicker(namesEvery)
	defer timer.Stop()
	for ctx.Err() == nil {
		window.Called(names(ctx, client))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

// namesEvery is how often a window asks for names.
const namesEvery = 30 * time.Second

// names returns what keys are called on a chain; none if it does not say.
func names(ctx context.Context, client ledger.Chain) view.Names {
	ctx, cancel := context.WithTimeout(ctx, namesFor)
	defer cancel()
	list, _ := client.Names(ctx)
	return view.NewNames(list)
}
