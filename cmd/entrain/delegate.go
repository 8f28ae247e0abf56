package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
)

// delegating holds the flags of key delegate.
type delegating struct {
	acting
	run, chainID  string
	last          time.Duration
	renew, revoke bool
}

func keyDelegateCommand(c console) *cobra.Command {
	var o delegating
	cmd := &cobra.Command{
		Use:   "delegate NODE|DELEGATION",
		Short: "Let another key work for yours in a run, for a limited time",
		Long: `Signs a delegation: a line that lets the key NODE (as entrain key prints it) take part in a run
for you. NODE may do what you may, and you are paid what it earns, so your own key need not be on
the machines that train. Signing needs no network, and a stolen node key is worthless once the
delegation expires.

The node submits the line: entrain join RUN --delegation LINE. To prolong it while the node works,
sign another line and submit it with --renew and the node's key. --revoke ends a delegation early
and withdraws the node at once. A delegation that was never submitted cannot be revoked; it expires.

A node works for one owner at a time. The owner gets back the tokens that a node stakes from its account.`,
		Example: "  entrain key delegate 77ab...09 --run my-run --chain-id my-chain --for 24h\n" +
			"  entrain key delegate 77ab...09 --run my-run --chain-id my-chain --key ./owner.key > node.delegation\n" +
			"  entrain key delegate --renew node.delegation --key ./node.key\n" +
			"  entrain key delegate --revoke 77ab...09 --run my-run",
		Args: between(1, 1, "one public key, or a delegation"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.renew {
				return c.submitDelegation(cmd, o, args[0])
			}
			node, err := onchain.ParseKey(args[0])
			if err != nil {
				return err
			}
			if !host.RunNameValid(o.run) {
				return fmt.Errorf("--run %q is not a run's name: say in which run the node works for you", o.run)
			}
			if o.revoke {
				return c.send(cmd.Context(), o.acting, host.Revoke{Run: o.run, Node: node}, fmt.Sprintf("revoke a delegation in run %q", o.run),
					fmt.Sprintf("node %s no longer works for you in run %q", node, o.run))
			}
			return c.delegate(o, node)
		},
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.run, "run", "", "`name` of the run")
	f.StringVar(&o.chainID, "chain-id", "", "`name` of the chain")
	f.DurationVar(&o.last, "for", 24*time.Hour, "how long it lasts, at most 720h")
	f.BoolVar(&o.renew, "renew", false, "submit a DELEGATION, a line or a file that holds one, to the chain")
	f.BoolVar(&o.revoke, "revoke", false, "end the delegation of NODE")
	cmd.MarkFlagsMutuallyExclusive("renew", "revoke")
	return cmd
}

// delegate signs a delegation and prints it.
func (c console) delegate(o delegating, node key.Public) error {
	owner, err := c.loadKey(o.keyFile)
	if err != nil {
		return err
	}
	d, err := onchain.NewDelegation(owner, o.chainID, o.run, node, o.last)
	if err != nil {
		return err
	}
	c.say("node %s works for %s in run %q until %s", node, owner.Public(), o.run, d.Expires().Format(time.RFC3339))
	_, err = fmt.Fprintln(c.out, d)
	return err
}

// submitDelegation submits a delegation to its chain, with the node's key.
func (c console) submitDelegation(cmd *cobra.Command, o delegating, line string) error {
	d, err := onchain.ReadDelegation(line)
	if err != nil {
		return err
	}
	err = c.act(cmd.Context(), o.acting, func(client ledger.Chain, node key.Public) (host.Body, error) {
		return host.Delegate{Run: d.Run, Certificate: d.Certificate}, d.Check(client.ChainID(), d.Run, node, time.Now())
	})
	if err != nil {
		return fmt.Errorf("submit a delegation: %w", err)
	}
	c.say("works for %s in run %q until %s", d.Certificate.Owner, d.Run, d.Expires().Format(time.RFC3339))
	return nil
}
