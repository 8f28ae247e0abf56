package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger/solana"
	"github.com/entrain-network/entrain/onchain"
)

func solanaCommand(c console) *cobra.Command {
	var a acting
	var supply uint64
	cmd := &cobra.Command{
		Use:   "solana [PROGRAM]",
		Short: "Put the coordinator of runs on a cluster of Solana, and make a token for them",
		Long: `Runs can live on Solana instead of a chain of their own. Other commands take the address that this one
prints, as --chain solana:URL#PROGRAM or solana:URL#PROGRAM:MINT.

PROGRAM is the file of the coordinator, chain/solana/bin/entrain.so of make solana. To put it on a cluster
takes some 700 transactions and, for its rent, about 4.5 SOL of your key. When it breaks off, the same command
goes on. Your key can replace the program. Once you trust it, give that power to nobody: solana program
set-upgrade-authority PROGRAM --final.

--supply N makes a token of Solana for runs: N of them, without decimals, all yours. Nobody can make more or
freeze any, and a key has one such token. Any other token of the SPL program will do as well: write its mint
behind the program.

Your key is an account of Solana as it is, and pays in SOL: entrain wallet show prints its address.
docs/chains.md says what Solana gives and costs.`,
		Example: "  entrain chain solana chain/solana/bin/entrain.so --supply 1000000 --chain solana:https://api.devnet.solana.com\n" +
			"  entrain chain solana --supply 1000000 --chain solana:https://api.devnet.solana.com#6NxF...9p",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := solana.ParsePlace(c.endpoints(a.chain)[0])
			if err != nil {
				return fmt.Errorf("--chain: %w", err)
			}
			switch {
			case len(args) == 1:
			case supply == 0:
				return errors.New("name the file of the PROGRAM to put on the cluster, or say with --supply how many tokens to make")
			case at.Unnamed():
				return fmt.Errorf("--chain %s names no program of runs: entrain chain solana PROGRAM puts one there and prints its address", onchain.Plain(at.String()))
			}
			k, _, err := c.ownKey(a.keyFile)
			if err != nil {
				return err
			}
			client, err := solana.NewClient(cmd.Context(), solana.Options{Program: at.Program, Endpoints: []string{at.Endpoint}})
			if err != nil {
				return err
			}
			defer client.Close()
			if len(args) == 1 {
				if err := c.deploy(cmd.Context(), client, k, &at, args[0]); err != nil {
					return fmt.Errorf("deploy %q: %w", args[0], err)
				}
			}
			if supply > 0 {
				if at.Mint, err = client.NewToken(cmd.Context(), k, supply); err != nil {
					return fmt.Errorf("make a token: %w", err)
				}
			}
			_, err = fmt.Fprintln(c.out, at)
			return err
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&a.chain, "chain", nil, "`URL` of an endpoint of a cluster, as solana:https://HOST")
	keyFlag(cmd, &a.keyFile)
	f.Uint64Var(&supply, "supply", 0, "`tokens` to make for runs; 0: none")
	return cmd
}

// deploy puts the program in a file on the cluster at, which then names it.
func (c console) deploy(ctx context.Context, client *solana.Client, k key.Private, at *solana.Place, path string) error {
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	percent := 0
	at.Program, err = client.Deploy(ctx, k, file, func(done, all int) {
		if now := 100 * done / all; now >= percent+10 || done == all {
			percent = now
			c.say("%d %% of %d bytes", now, all)
		}
	})
	return err
}
