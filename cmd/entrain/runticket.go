package main

import (
	"fmt"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/view"
	"github.com/spf13/cobra"
)

func runTicketCommand(c console) *cobra.Command {
	var chain, at []string
	var location, file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ticket RUN",
		Short: "Print a line with all a stranger needs to join a run",
		Long: `Prints a ticket: one line with all that a stranger needs to join the run, to put in a mail or on a
page. It holds the chain's name and addresses, the run's name and identity, and the location and
hash of its data. entrain join refuses any other chain, and any other run of the same name, at these
addresses.

A ticket is not secret and grants nothing. Given a ticket instead of a run's name, with --json, this
command prints its contents.`,
		Example: "  entrain run ticket my-run --at chain.example.org\n" +
			"  entrain run ticket my-run --at https://a.example.org --at 203.0.113.5:7370 --data https://data.example.org/corpus -o my-run.ticket\n" +
			"  entrain run ticket my-run.ticket --json",
		Args: needTarget, ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			on, err := onchain.ParseTarget(args[0], &chain)
			if err != nil {
				return err
			}
			var t onchain.Ticket
			if on.Ticket != nil {
				t = *on.Ticket
			} else if t, err = c.newTicket(cmd, on.Run, chain, at, location); err != nil {
				return err
			}
			if file != "" {
				if err := atomicfile.WriteBytes(file, 0o644, []byte(t.String()+"\n")); err != nil {
					return fmt.Errorf("ticket: %w", err)
				}
				c.say("join with: entrain join %s", view.Quote(file))
			}
			if asJSON {
				return c.object(t)
			}
			if file != "" {
				return nil
			}
			_, err = fmt.Fprintln(c.out, t)
			return err
		},
	}
	chainFlag(cmd, &chain)
	f := cmd.Flags()
	f.StringArrayVar(&at, "at", nil, "`HOST`, HOST:PORT or URL at which strangers reach a replica; may be repeated (default: as --chain)")
	dataFlag(cmd, &location)
	outputFlag(cmd, &file, "file")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// newTicket makes the ticket of a run as the chain has it.
func (c console) newTicket(cmd *cobra.Command, run string, chain, at []string, location string) (t onchain.Ticket, err error) {
	err = c.onRun(cmd.Context(), chain, onchain.Target{Run: run}, func(client ledger.Chain, on onchain.Run) (err error) {
		if len(at) == 0 {
			at = c.endpoints(chain)
		}
		t, err = on.Ticket(client.ChainID(), location, at)
		return err
	})
	if err != nil {
		return t, err
	}
	if onchain.AllLoopback(t.Addresses) {
		c.say("only this machine can use the ticket: %s is its own address; say at which others reach it with --at HOST", t.Addresses[0])
	}
	if t.Data == "" {
		c.say("the run's data has no address: every member must have it, and name it with --data; put it on a web server and name that with --data URL")
	}
	return t, nil
}
