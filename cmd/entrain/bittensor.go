package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/chain/bittensor"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
)

// subnetOptions are the flags of all commands on a subnet of Bittensor.
type subnetOptions struct {
	endpoint, hotkey string
	netuid           uint16
}

func bittensorCommand(c console) *cobra.Command {
	var o subnetOptions
	cmd := group("bittensor", "Connect a run to a subnet of Bittensor",
		`The run stays on its own chain; a subnet of Bittensor pays for it. Miners register a hotkey and commit
the key that they have in the run. Validators set the subnet's weights by the run's scores.

docs/chains.md says what each chain gives and costs.`,
		bittensorStatusCommand(c, &o), bittensorCommitCommand(c, &o), bittensorWeightsCommand(c, &o))
	f := cmd.PersistentFlags()
	f.StringVar(&o.endpoint, "endpoint", participant.Finney, "`URL` of a node of Bittensor's chain")
	f.Uint16Var(&o.netuid, "netuid", 0, "`number` of the subnet")
	f.StringVar(&o.hotkey, "hotkey", "", "`file` of the hotkey, as btcli makes it in ~/.bittensor/wallets/NAME/hotkeys")
	_ = cmd.MarkPersistentFlagFilename("hotkey")
	_ = cmd.MarkPersistentFlagRequired("netuid")
	return cmd
}

// open asks the endpoint for the subnet.
func (o subnetOptions) open(ctx context.Context) (bittensor.Subnet, error) {
	s, err := participant.OpenSubnet(ctx, o.endpoint, o.netuid)
	if err != nil {
		err = fmt.Errorf("--endpoint: %w", err)
	}
	return s, err
}

// signer reads the hotkey and opens the subnet.
func (o subnetOptions) signer(ctx context.Context) (k bittensor.Key, s bittensor.Subnet, err error) {
	if k, err = walletKey("hotkey", o.hotkey); err == nil {
		s, err = o.open(ctx)
	}
	return k, s, err
}

// walletKey reads the key in the file that a flag names.
func walletKey(flag, file string) (k bittensor.Key, err error) {
	if file == "" {
		return k, fmt.Errorf("say which %s with --%s FILE", flag, flag)
	}
	if k, err = bittensor.ReadKey(file); err != nil {
		err = fmt.Errorf("--%s: %w", flag, err)
	}
	return k, err
}

func bittensorStatusCommand(c console, o *subnetOptions) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show a subnet's hotkeys, and which members of runs they are",
		Long: `Shows the registered hotkeys of a subnet, the key in runs to which each has committed, and, with
--hotkey, the weights that this hotkey has set, of 65,535.`,
		Example: "  entrain bittensor status --netuid 12\n  entrain bittensor status --netuid 12 --hotkey ~/.bittensor/wallets/me/hotkeys/default --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			s, err := o.open(ctx)
			if err != nil {
				return err
			}
			neurons, err := s.Neurons(ctx)
			if err == nil && o.hotkey != "" {
				var k bittensor.Key
				if k, err = walletKey("hotkey", o.hotkey); err == nil {
					err = s.Weigh(ctx, k.Account(), neurons)
				}
			}
			if err != nil {
				return err
			}
			return printAll(c, asJSON, neurons, bittensor.WriteTable)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func bittensorCommitCommand(c console, o *subnetOptions) *cobra.Command {
	var file, coldkey string
	cmd := &cobra.Command{
		Use:   "commit [BUCKET]",
		Short: "Bind a hotkey to your key in runs, and register it before",
		Long: `Commits, on the subnet, that the hotkey is your key in runs, and the address of your bucket if you
give one. Both keys sign: nobody else can claim your work. A new commitment replaces the one before.

With --coldkey it first registers the hotkey, unless it is registered. The coldkey pays the subnet's present
price, which is not given back. Its file must not be encrypted. If yours is, register with btcli, which asks
for its password.`,
		Example: "  entrain bittensor commit --netuid 12 --hotkey ~/.bittensor/wallets/me/hotkeys/default\n" +
			"  entrain bittensor commit --netuid 12 --hotkey ~/.bittensor/wallets/me/hotkeys/default --coldkey ./coldkey",
		Args: between(0, 1, "one run at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			member, err := c.loadKey(file)
			if err != nil {
				return err
			}
			var cold bittensor.Key
			if coldkey != "" {
				if cold, err = walletKey("coldkey", coldkey); err != nil {
					return err
				}
			}
			hot, s, err := o.signer(cmd.Context())
			if err != nil {
				return err
			}
			c.say("waiting for a block; one comes every %v", participant.SubnetBlock)
			if coldkey != "" {
				switch made, err := s.Enroll(cmd.Context(), cold, hot.Account()); {
				case err != nil:
					return err
				case made:
					c.say("%s is registered on subnet %d", hot.Account(), s.NetUID)
				}
			}
			if err := s.Commit(cmd.Context(), hot, member, strings.Join(args, "")); err != nil {
				return err
			}
			c.say("on subnet %d, %s is the member %s", o.netuid, hot.Account(), member.Public())
			return nil
		},
	}
	keyFlag(cmd, &file)
	cmd.Flags().StringVar(&coldkey, "coldkey", "", "`file` of the key that pays for registering the hotkey")
	_ = cmd.MarkFlagFilename("coldkey")
	return cmd
}

func bittensorWeightsCommand(c console, o *subnetOptions) *cobra.Command {
	var chain []string
	cmd := &cobra.Command{
		Use:   "weights RUN | RUN@HOST | TICKET",
		Short: "Set a subnet's weights by a run's scores",
		Long: `Sets the weights of a validator's hotkey: each hotkey that has committed to a member of the run gets
weight in proportion to the member's score, as the run's chain has combined it from all validators. A
member that several hotkeys name counts once, for the lowest number. A subnet that wants weights hidden at
first gets them encrypted, and its chain shows them by itself an hour or more later. Without --hotkey it shows
the scores, and sets nothing. entrain validate --bittensor sets them after each scoring period.`,
		Example: "  entrain bittensor weights my-run --netuid 12\n" +
			"  entrain bittensor weights my-run --netuid 12 --hotkey ~/.bittensor/wallets/me/hotkeys/default",
		Args:              needTarget,
		ValidArgsFunction: c.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			to, err := onchain.ParseTarget(args[0], &chain)
			if err != nil {
				return err
			}
			var hot bittensor.Key
			var s bittensor.Subnet
			if o.hotkey == "" {
				s, err = o.open(ctx)
			} else {
				hot, s, err = o.signer(ctx)
			}
			if err != nil {
				return err
			}
			neurons, err := s.Neurons(ctx)
			if err != nil {
				return err
			}
			var scores map[uint16]float64
			if err := c.onRun(ctx, chain, to, func(_ ledger.Chain, on onchain.Run) error {
				scores = participant.SubnetScores(neurons, on.Snapshot.State)
				return nil
			}); err != nil {
				return err
			}
			for _, n := range neurons {
				if v, ok := scores[n.UID]; ok {
					fmt.Fprintf(c.out, "%d %s %.4f\n", n.UID, n.Member, v)
				}
			}
			if o.hotkey == "" {
				return nil
			}
			c.say("waiting for a block; one comes every %v", participant.SubnetBlock)
			in, err := s.SetWeights(ctx, hot, scores)
			if err == nil {
				c.say("%s", participant.WeightsSet(len(scores), s.NetUID, in))
			}
			return err
		},
	}
	chainFlag(cmd, &chain)
	return cmd
}
