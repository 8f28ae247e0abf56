package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
)

func poolShowCommand(c console) *cobra.Command {
	var chain []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show POOL",
		Short: "Show a pool's terms, and how it stands",
		Long:  "Shows a pool's terms, what was lent to it and by whom, what it can still stake, and what it owes to whom.",
		Example: `  entrain pool show our-pool
  entrain pool show our-pool --json | jq .lenders`,
		Args: needPool, ValidArgsFunction: c.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.dial(cmd.Context(), chain, nil)
			if err != nil {
				return err
			}
			p, err := client.Pool(cmd.Context(), args[0])
			if errors.Is(err, ledger.ErrUnknownPool) {
				err = fmt.Errorf("chain %q has no pool %q; entrain pool list shows those it has", client.ChainID(), args[0])
			}
			if err := errors.Join(err, client.Close()); err != nil {
				return err
			}
			if asJSON {
				return c.object(p)
			}
			return writePool(c.out, p)
		},
	}
	chainFlag(cmd, &chain)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func writePool(out io.Writer, p host.Pool) error {
	fmt.Fprintf(out, "pool        %s, %s; paid at %s\n", p.Name, p.Stage, p.Address)
	fmt.Fprintf(out, "operator    %s\n", p.Operator)
	for _, w := range p.Workers {
		fmt.Fprintf(out, "worker      %s\n", w)
	}
	fmt.Fprintf(out, "stakes in   %s\n", strings.Join(p.Runs, ", "))
	fmt.Fprintf(out, "terms       commission %s; the operator's own part at least %s; lenders begin with %s\n", bpText(p.CommissionBP), bpText(p.OwnBP), tokens(max(1, p.Least)))
	fmt.Fprintf(out, "lent        %s, of which %s can still be staked and %s have come back\n", tokens(p.Lent), thousands(p.Idle), thousands(p.Back))
	fmt.Fprintf(out, "to collect  %s; the operator's commission %s\n", tokens(p.Unpaid), tokens(p.Commission))
	if p.Held > 0 {
		fmt.Fprintf(out, "held        %s, to be shared at the first stake\n", tokens(p.Held))
	}
	if len(p.Lenders) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nlender\tlent\tdue\n")
	for _, l := range p.Lenders {
		fmt.Fprintf(w, "%s\t%s\t%s\n", short(l.Key.String()), thousands(l.Lent), thousands(l.Due))
	}
	return w.Flush()
}

func poolListCommand(c console) *cobra.Command {
	var chain []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the pools of a chain",
		Long:    "Lists the pools of a chain, with their terms and how they stand.",
		Example: "  entrain pool list\n  entrain pool list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			client, err := c.dial(cmd.Context(), chain, nil)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, client.Close()) }()
			names, err := client.Pools(cmd.Context())
			if err != nil {
				return err
			}
			if len(names) == 0 && !asJSON {
				c.say("chain %q has no pools yet; open one with: entrain pool create POOL", client.ChainID())
				return nil
			}
			w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
			if !asJSON {
				fmt.Fprintf(w, "pool\tstage\tlent\tidle\tcommission\town part\tlenders\n")
			}
			for _, name := range names {
				p, err := client.Pool(cmd.Context(), name)
				if errors.Is(err, ledger.ErrUnknownPool) {
					continue // removed in between
				}
				if err != nil {
					return err
				}
				if asJSON {
					if err := c.object(p); err != nil {
						return err
					}
					continue
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", p.Name, p.Stage, thousands(p.Lent), thousands(p.Idle), bpText(p.CommissionBP), bpText(p.OwnBP), len(p.Lenders))
			}
			return w.Flush()
		},
	}
	chainFlag(cmd, &chain)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object for each pool")
	return cmd
}
