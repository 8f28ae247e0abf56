package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger/solana"
	"github.com/entrain-network/entrain/onchain"
)

// initSolana puts the program in a file on a cluster of Solana, makes a token of the supply if that
// is named, and prints the address of both. Without a file the address names the program.
func (c console) initSolana(cmd *cobra.Command, keyFile string, args []string) error {
	ctx, supply := cmd.Context(), uint64(0)
	at, err := solana.ParsePlace(args[0])
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "supply":
			supply, _ = cmd.Flags().GetUint64(f.Name)
		case "key", "with-parent":
		default:
			err = fmt.Errorf("--%s is not for Solana, where no replica is yours", f.Name)
		}
	})
	switch {
	case err != nil:
		return err
	case len(args) > 2:
		return errors.New("name one address of a cluster, and one file with the program")
	case len(args) == 2:
	case supply == 0:
		return errors.New("name the file of the PROGRAM to put on the cluster, or say with --supply how many tokens to make")
	case at.Unnamed():
		return fmt.Errorf("%s names no program of runs: entrain chain init solana:URL PROGRAM puts one there and prints its address", onchain.Plain(at.String()))
	}
	k, _, err := c.ownKey(keyFile)
	if err != nil {
		return err
	}
	client, err := solana.NewClient(ctx, solana.Options{Program: at.Program, Endpoints: []string{at.Endpoint}})
	if err != nil {
		return err
	}
	defer client.Close()
	if len(args) == 2 {
		if err := c.deploy(ctx, client, k, &at, args[1]); err != nil {
			return fmt.Errorf("deploy %q: %w", args[1], err)
		}
	}
	if supply > 0 {
		if at.Mint, err = client.NewToken(ctx, k, supply); err != nil {
			return fmt.Errorf("make a token: %w", err)
		}
	}
	_, err = fmt.Fprintln(c.out, at)
	return err
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
