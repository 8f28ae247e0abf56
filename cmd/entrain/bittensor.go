package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/chain/bittensor"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
)

// subnetOptions are the flags of all commands on a subnet of Bittensor.
type subnetOptions struct {
	endpoint, hotkey string
	netuid           uint16
}

// blockTime is how often Bittensor makes a block; a wait looks for new ones several times as often.
const blockTime = 12 * time.Second

// finney is a node of Bittensor's main chain.
const finney = "wss://entrypoint-finney.opentensor.ai"

func bittensorCommand(c console) *cobra.Command {
	var o subnetOptions
	cmd := group("bittensor", "Connect a run to a subnet of Bittensor",
		`The run stays on its own chain; a subnet of Bittensor pays for it. Miners register a hotkey and commit
the key that they have in the run. Validators set the subnet's weights by the run's scores.

docs/chains.md says what each chain gives and costs.`,
		bittensorStatusCommand(c, &o), bittensorRegisterCommand(c, &o), bittensorCommitCommand(c, &o), bittensorWeightsCommand(c, &o))
	f := cmd.PersistentFlags()
	f.StringVar(&o.endpoint, "endpoint", finney, "`URL` of a node of Bittensor's chain")
	f.Uint16Var(&o.netuid, "netuid", 0, "`number` of the subnet")
	f.StringVar(&o.hotkey, "hotkey", "", "`file` of the hotkey, as btcli makes it in ~/.bittensor/wallets/NAME/hotkeys")
	_ = cmd.MarkPersistentFlagFilename("hotkey")
	_ = cmd.MarkPersistentFlagRequired("netuid")
	return cmd
}

// open asks the endpoint for the subnet.
func (o subnetOptions) open(ctx context.Context) (bittensor.Subnet, error) {
	client, err := bittensor.Dial(ctx, o.endpoint)
	if err != nil {
		return bittensor.Subnet{}, fmt.Errorf("--endpoint: %w", err)
	}
	s := bittensor.Subnet{Client: client, NetUID: o.netuid, Poll: blockTime / 4}
	return s, s.Exists(ctx)
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
		Args:    cobra.NoArgs,
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

func bittensorRegisterCommand(c console, o *subnetOptions) *cobra.Command {
	var coldkey string
	cmd := &cobra.Command{
		Use:   "register",
		Short: "Register a hotkey on a subnet, for the subnet's price",
		Long: `Registers a hotkey on a subnet. The coldkey pays the subnet's present price, which is not given back.

The coldkey's file must not be encrypted. If yours is, register with btcli, which asks for its password.`,
		Example: "  entrain bittensor register --netuid 12 --hotkey ~/.bittensor/wallets/me/hotkeys/default --coldkey ./coldkey",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cold, err := walletKey("coldkey", coldkey)
			if err != nil {
				return err
			}
			hot, s, err := o.signer(cmd.Context())
			if err != nil {
				return err
			}
			c.say("waiting for a block; one comes every %v", blockTime)
			if err := s.Register(cmd.Context(), cold, hot.Account()); err != nil {
				return err
			}
			c.say("%s is registered on subnet %d; next: entrain bittensor commit", hot.Account(), o.netuid)
			return nil
		},
	}
	cmd.Flags().StringVar(&coldkey, "coldkey", "", "`file` of the key that pays")
	_ = cmd.MarkFlagFilename("coldkey")
	return cmd
}

func bittensorCommitCommand(c console, o *subnetOptions) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "commit [BUCKET]",
		Short: "Bind a hotkey to your key in runs",
		Long: `Commits, on the subnet, that the hotkey is your key in runs, and the address of your bucket if you
give one. Both keys sign: nobody else can claim your work. A new commitment replaces the one before.`,
		Example: "  entrain bittensor commit --netuid 12 --hotkey ~/.bittensor/wallets/me/hotkeys/default",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := c.keyPath(file)
			if err != nil {
				return err
			}
			member, err := c.loadKey(path)
			if err != nil {
				return err
			}
			hot, s, err := o.signer(cmd.Context())
			if err != nil {
				return err
			}
			c.say("waiting for a block; one comes every %v", blockTime)
			if err := s.Commit(cmd.Context(), hot, member, strings.Join(args, "")); err != nil {
				return err
			}
			c.say("on subnet %d, %s is the member %s", o.netuid, hot.Account(), member.Public())
			return nil
		},
	}
	keyFlag(cmd, &file)
	return cmd
}

func bittensorWeightsCommand(c console, o *subnetOptions) *cobra.Command {
	var chain []string
	cmd := &cobra.Command{
		Use:   "weights RUN | RUN@HOST | TICKET",
		Short: "Set a subnet's weights by a run's scores",
		Long: `Sets the weights of a validator's hotkey: each hotkey that has committed to a member of the run gets
weight in proportion to the member's score, as the run's chain has combined it from all validators. A
member that several hotkeys name counts once, for the lowest number. Without --hotkey it shows the scores,
and sets nothing. entrain validate --bittensor sets them after each scoring period.`,
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
				scores = scoresOf(neurons, on.Snapshot.State)
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
			c.say("waiting for a block; one comes every %v", blockTime)
			if err := s.SetWeights(ctx, hot, scores); err != nil {
				return err
			}
			c.say("set the weights of %d hotkeys", len(scores))
			return nil
		},
	}
	chainFlag(cmd, &chain)
	return cmd
}

// scoresOf returns the scores of a run's members by the numbers of their hotkeys.
func scoresOf(neurons []bittensor.Neuron, s coordinator.State) map[uint16]float64 {
	return bittensor.Scores(neurons, func(pub key.Public) float64 {
		if i, ok := s.Find(pub); ok && s.Member(i).Scored {
			return float64(s.Member(i).Score) / score.One
		}
		return 0
	})
}

// A weigher sets a subnet's weights by a run's scores. It has a connection of its own each time,
// because periods can be hours apart.
type weigher struct {
	subnetOptions
	hotkey  bittensor.Key
	settled chan uint32 // periods
}

// newWeigher finds the hotkey and the node as btcli does, and checks that the hotkey is registered
// on the subnet.
func (c console) newWeigher(ctx context.Context, netuid uint16) (*weigher, error) {
	w := &weigher{settled: make(chan uint32, 1)}
	wallets := c.env("BT_WALLET_PATH")
	if wallets == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("say where the wallets are with BT_WALLET_PATH: %w", err)
		}
		wallets = filepath.Join(home, ".bittensor", "wallets")
	}
	file := filepath.Join(wallets, cmp.Or(c.env("BT_WALLET_NAME"), "default"), "hotkeys", cmp.Or(c.env("BT_WALLET_HOTKEY"), "default"))
	w.endpoint, w.netuid = cmp.Or(c.env("BT_SUBTENSOR_CHAIN_ENDPOINT"), finney), netuid
	var err error
	if w.hotkey, err = bittensor.ReadKey(file); err != nil {
		return nil, fmt.Errorf("hotkey: %w; name another with BT_WALLET_NAME and BT_WALLET_HOTKEY", err)
	}
	s, err := w.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s, of BT_SUBTENSOR_CHAIN_ENDPOINT or by default: %w", w.endpoint, err)
	}
	switch _, registered, err := s.UID(ctx, w.hotkey.Account()); {
	case err != nil:
		return nil, err
	case !registered:
		return nil, fmt.Errorf("%s is not registered on subnet %d; entrain bittensor register does it", w.hotkey.Account(), netuid)
	}
	return w, nil
}

// tell says that a period is settled. Only the newest counts.
func (w *weigher) tell(period uint32) {
	select {
	case <-w.settled:
	default:
	}
	w.settled <- period
}

// run sets the weights after each period, until settled is closed or ctx ends. It reports
// a failure and tries again after the next period.
func (w *weigher) run(ctx context.Context, c console, l ledger.Reader, run string) {
	for period := range w.settled {
		n, err := w.set(ctx, l, run)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.say("period %d: the weights on subnet %d are not set: %v; the next period tries again", period, w.netuid, err)
		default:
			c.say("period %d: set the weights of %d hotkeys on subnet %d", period, n, w.netuid)
		}
	}
}

func (w *weigher) set(ctx context.Context, l ledger.Reader, run string) (n int, err error) {
	s, err := w.open(ctx)
	if err != nil {
		return 0, err
	}
	neurons, err := s.Neurons(ctx)
	if err != nil {
		return 0, err
	}
	now, err := onchain.GetSnapshot(ctx, l, run)
	if err != nil {
		return 0, err
	}
	scores := scoresOf(neurons, now.State)
	return len(scores), s.SetWeights(ctx, w.hotkey, scores)
}
