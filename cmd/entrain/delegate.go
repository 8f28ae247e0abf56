package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/spf13/cobra"
)

func keyDelegateCommand(c console) *cobra.Command {
	var keyFile, run, chain string
	var last time.Duration
	cmd := &cobra.Command{
		Use:   "delegate NODE",
		Short: "Sign that another key works for yours in a run, for a while",
		Long: `Prints a line that lets the key NODE (as entrain key show prints it there) take part in a run for you: where
you may, it may, and what it earns is paid to you. So your own key need not be on the machines that train: it
signs, without a network, and a stolen node key is worth nothing once its time is over.

The node brings the line to the chain: entrain join RUN --delegation LINE. To go on longer, sign another one
and bring it with entrain key bring, while the node works. entrain run revoke ends one early. A node works
for one owner at a time; tokens that it puts up as a stake of its own are given back to the owner.`,
		Example: "  entrain key delegate 77ab...09 --run my-run --chain-id my-chain --for 24h\n" +
			"  entrain key delegate 77ab...09 --run my-run --chain-id my-chain --key ./owner.key > node.delegation",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			node, err := parseKey(args[0])
			if err != nil {
				return err
			}
			switch {
			case !host.RunNameValid(run):
				return fmt.Errorf("--run %q is no run's name: say in which run the node works for you", run)
			case !host.ChainIDValid(chain):
				return fmt.Errorf("--chain-id %q is no chain's: say which chain the run is on; entrain status shows its name", chain)
			case last <= 0 || last.Milliseconds() > host.DelegationMsMax:
				return fmt.Errorf("--for %s: want more than nothing and at most %d days", last, host.DelegationMsMax/(24*3600*1000))
			}
			path, err := c.keyPath(keyFile)
			if err != nil {
				return err
			}
			owner, err := c.loadKey(path)
			if err != nil {
				return err
			}
			if owner.Public() == node {
				return errors.New("this is your own key, which needs no delegation")
			}
			d := onchain.Delegation{Chain: chain, Run: run, Node: node}
			d.Certificate = host.NewCertificate(owner, chain, run, node, uint64(time.Now().Add(last).UnixMilli()))
			c.say("node %s works for %s in run %q until %s", node, owner.Public(), run, d.Expires().Format(time.RFC3339))
			_, err = fmt.Fprintln(c.out, d)
			return err
		},
	}
	keyFlag(cmd, &keyFile)
	f := cmd.Flags()
	f.StringVar(&run, "run", "", "`name` of the run")
	f.StringVar(&chain, "chain-id", "", "`name` of its chain")
	f.DurationVar(&last, "for", 24*time.Hour, "how long it lasts, at most 720h")
	return cmd
}

func keyBringCommand(c console) *cobra.Command {
	var a acting
	cmd := &cobra.Command{
		Use:   "bring DELEGATION",
		Short: "Bring a delegation to the chain",
		Long: `Brings a delegation, a line or a file that holds one, to its chain, with the node's key. Join does that by
itself, when it begins; this is for a longer one while the node works.`,
		Example: "  entrain key bring node.delegation --key ./node.key",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := onchain.ReadDelegation(args[0])
			if err != nil {
				return err
			}
			err = c.act(cmd.Context(), a, func(client ledger.Chain, node key.Public) (host.Body, error) {
				return host.Delegate{Run: d.Run, Certificate: d.Certificate}, d.Check(client.ChainID(), d.Run, node, time.Now())
			})
			if err != nil {
				return fmt.Errorf("bring a delegation: %w", err)
			}
			c.say("works for %s in run %q until %s", d.Certificate.Owner, d.Run, d.Expires().Format(time.RFC3339))
			return nil
		},
	}
	a.flags(cmd)
	return cmd
}

func runRevokeCommand(c console) *cobra.Command {
	var a acting
	cmd := &cobra.Command{
		Use:   "revoke RUN NODE",
		Short: "End a delegation that you have signed",
		Long: `Ends the work of a node for your key in a run before its time is over. The node is withdrawn at once, and its
delegation counts no more. A delegation that was never brought to the chain cannot be revoked: it ends when
it expires.`,
		Example: "  entrain run revoke my-run 77ab...09",
		Args:    cobra.ExactArgs(2), ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needRun(cmd, args[:1]); err != nil {
				return err
			}
			node, err := parseKey(args[1])
			if err != nil {
				return err
			}
			err = c.act(cmd.Context(), a, func(ledger.Chain, key.Public) (host.Body, error) {
				return host.Revoke{Run: args[0], Node: node}, nil
			})
			if err != nil {
				return fmt.Errorf("revoke a delegation in run %q: %w", args[0], err)
			}
			c.say("node %s works for you in run %q no more", node, args[0])
			return nil
		},
	}
	a.flags(cmd)
	return cmd
}
