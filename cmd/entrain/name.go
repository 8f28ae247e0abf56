package main

import (
	"context"
	"fmt"
	"io"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/report"
)

// nameKey gives the user's key a name and a team on the chain, or takes both away if name is "".
func (c console) nameKey(ctx context.Context, a acting, name, team string) error {
	s, err := onchain.Naming(name, team)
	if err != nil {
		return err
	}
	if name == "" {
		return c.send(ctx, a, s, "give up a name", "your key has no name on this chain")
	}
	err = c.act(ctx, a, func(client ledger.Chain, self key.Public) (_ host.Body, err error) {
		s.Run, err = onchain.PartOf(ctx, client, self)
		return s, err
	})
	if err != nil {
		return fmt.Errorf("take the name %q: %w", name, err)
	}
	done := fmt.Sprintf("your key is called %s on this chain", name)
	if team != "" {
		done += ", of team " + team
	}
	c.say("%s", done)
	return nil
}

// listNames prints the names on a chain.
func (c console) listNames(ctx context.Context, chain []string, asJSON bool) error {
	return c.connected(ctx, chain, func(client ledger.Chain) error {
		list, err := client.Names(ctx)
		if err != nil {
			return err
		}
		return c.print(asJSON, list, func(w io.Writer) error { return report.Names(w, list) })
	})
}
