package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
)

func accountCommand(c console) *cobra.Command {
	return group("account", "Show and send tokens",
		`The chain's genesis makes all the tokens there are. They are stake of members, which those lose who
cheat, and pay for those who train: a run's treasury holds what people have given it (entrain fund) and
pays for each point (entrain claim).`,
		accountShowCommand(c), accountSendCommand(c))
}

func accountShowCommand(c console) *cobra.Command {
	var a acting
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [KEY]",
		Short: "Show how many tokens a key has",
		Long: `Shows how many tokens a key can pay with; without KEY, your own. Stake in runs and tokens lent to pools
are not among them: entrain status RUN and entrain pool show say what is there.`,
		Example: "  entrain account show\n  entrain account show $(entrain key show) --json | jq .tokens",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var who key.Public
			if len(args) == 1 {
				var err error
				if who, err = parseKey(args[0]); err != nil {
					return err
				}
			} else {
				path, err := c.keyPath(a.keyFile)
				if err != nil {
					return err
				}
				k, err := c.loadKey(path)
				if err != nil {
					return err
				}
				who = k.Public()
			}
			client, err := c.dial(cmd.Context(), a.chain, nil)
			if err != nil {
				return err
			}
			has, err := client.Account(cmd.Context(), who)
			status, err2 := client.Status(cmd.Context())
			if err := errors.Join(err, err2, client.Close()); err != nil {
				return err
			}
			if asJSON {
				return c.object(struct {
					ledger.Account
					Chain  string `json:"chain"`
					Supply uint64 `json:"supply"`
				}{has, status.Chain, status.Supply})
			}
			_, err = fmt.Fprintf(c.out, "%s of %s on chain %s\n", tokens(has.Tokens), thousands(status.Supply), status.Chain)
			return err
		},
	}
	a.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func accountSendCommand(c console) *cobra.Command {
	var a acting
	cmd := &cobra.Command{
		Use:   "send KEY AMOUNT",
		Short: "Send tokens to somebody",
		Long: `Sends tokens of yours to a key. There is no way to get them back. A key that has nothing yet must be
sent, and nobody may be left with, fewer than a 67-millionth of all tokens, unless it is nothing.`,
		Example: "  entrain account send 1f0c...e2 500",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("say to whom and how many tokens: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			to, err := parseKey(args[0])
			if err != nil {
				return err
			}
			amount, err := parseTokens(args[1])
			if err != nil {
				return err
			}
			err = c.act(cmd.Context(), a, func(ledger.Chain, key.Public) (host.Body, error) {
				return host.Transfer{To: to, Amount: amount}, nil
			})
			if err != nil {
				return fmt.Errorf("send %s: %w", tokens(amount), err)
			}
			c.say("sent %s to %s", tokens(amount), to)
			return nil
		},
	}
	a.flags(cmd)
	return cmd
}
