package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/ledger/solana"
	"github.com/entrain-network/entrain/onchain"
)

func solanaCommand(c console) *cobra.Command {
	var a acting
	cmd := group("solana", "Put the coordinator of runs on a cluster of Solana",
		`Runs can live on Solana instead of a chain of their own. The coordinator is a program there: deploy puts it
on a cluster, init makes a token for its runs. Commands then take the address that these print, as
--chain solana:URL#PROGRAM or solana:URL#PROGRAM:MINT.

Your key is an account of Solana as it is, and pays in SOL: entrain wallet show prints its address.
docs/chains.md says what Solana gives and costs.`,
		solanaDeployCommand(c, &a), solanaInitCommand(c, &a))
	f := cmd.PersistentFlags()
	f.StringArrayVar(&a.chain, "chain", nil, "`URL` of an endpoint of a cluster, as solana:https://HOST")
	f.StringVar(&a.keyFile, "key", "", keyUsage)
	_ = cmd.MarkPersistentFlagFilename("key")
	return cmd
}

// onSolana calls f with a connection to the cluster that --chain names.
func (c console) onSolana(ctx context.Context, a acting, f func(*solana.Client, solana.Place) error) error {
	at := c.endpoints(a.chain)
	p, err := solana.ParsePlace(at[0])
	if err != nil {
		return fmt.Errorf("--chain: %w", err)
	}
	client, err := solana.NewClient(ctx, solana.Options{Program: p.Program, Endpoints: []string{p.Endpoint}})
	if err != nil {
		return err
	}
	return errors.Join(f(client, p), client.Close())
}

func solanaDeployCommand(c console, a *acting) *cobra.Command {
	return &cobra.Command{
		Use:   "deploy FILE",
		Short: "Put the program of runs on a cluster",
		Long: `Puts the program in FILE, chain/solana/bin/entrain.so of make solana, on a cluster, and prints the address
for --chain. It takes some 700 transactions and, for the program's rent, about 4.5 SOL of your key. When it
breaks off, the same command goes on.

Your key can replace the program. Once you trust it, give that power to nobody: solana program
set-upgrade-authority PROGRAM --final.`,
		Example: "  entrain chain solana deploy chain/solana/bin/entrain.so --chain solana:https://api.devnet.solana.com",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			k, _, err := c.ownKey(a.keyFile)
			if err != nil {
				return err
			}
			return c.onSolana(cmd.Context(), *a, func(client *solana.Client, p solana.Place) error {
				percent := 0
				p.Program, err = client.Deploy(cmd.Context(), k, file, func(done, all int) {
					if now := 100 * done / all; now >= percent+10 || done == all {
						percent = now
						c.say("%d %% of %d bytes", now, all)
					}
				})
				if err != nil {
					return fmt.Errorf("deploy %q: %w", args[0], err)
				}
				return c.announceChain(p)
			})
		},
	}
}

func solanaInitCommand(c console, a *acting) *cobra.Command {
	return &cobra.Command{
		Use:   "init SUPPLY",
		Short: "Make a token for runs",
		Long: `Makes a token of Solana for runs: SUPPLY of them, without decimals, all yours. Nobody can make more or freeze
any. Prints the address for --chain of a chain whose runs use it. A key has one such token.

Any other token of the SPL program will do as well: write its mint behind the program.`,
		Example: "  entrain chain solana init 1000000 --chain solana:https://api.devnet.solana.com#6NxF...9p",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			supply, err := parseTokens(args[0])
			if err != nil {
				return err
			}
			k, _, err := c.ownKey(a.keyFile)
			if err != nil {
				return err
			}
			return c.onSolana(cmd.Context(), *a, func(client *solana.Client, p solana.Place) error {
				if p.Unnamed() {
					return fmt.Errorf("--chain %s names no program of runs: entrain chain solana deploy prints its address", onchain.Plain(p.String()))
				}
				if p.Mint, err = client.NewToken(cmd.Context(), k, supply); err != nil {
					return fmt.Errorf("make a token: %w", err)
				}
				return c.announceChain(p)
			})
		},
	}
}

// announceChain prints the address of a chain on Solana.
func (c console) announceChain(p solana.Place) error {
	_, err := fmt.Fprintln(c.out, p)
	return err
}
