package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	file := []byte(nil)
	if len(args) == 2 {
		if file, err = os.ReadFile(args[1]); err != nil {
			return err
		}
	}
	if err := at.Found(ctx, k, file, supply, c.say); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.out, at)
	return err
}
