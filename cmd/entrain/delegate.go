package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// delegation is a ledger.Certificate with what it is about. As text it is delegationPrefix and, in the URL alphabet of base64,
//
//	String chain | String run | 32 node | 32 owner | U64 expires | 64 signature
type delegation struct {
	Chain       string             `json:"chain"`
	Run         string             `json:"run"`
	Node        key.Public         `json:"node"`
	Certificate ledger.Certificate `json:"-"`
}

const (
	delegationPrefix   = "entrain-node1_"
	delegationBytesMax = 1 << 10
)

// String is the delegation as one line of text without spaces.
func (d delegation) String() string {
	b := wire.AppendString(wire.AppendString(nil, d.Chain), d.Run)
	return delegationPrefix + base64.RawURLEncoding.EncodeToString(d.Certificate.Append(append(b, d.Node[:]...)))
}

var errDelegation = errors.New("the delegation is cut short or mistyped: copy all of the line that entrain key delegate has printed")

// parseDelegation is the inverse of String. What it returns is signed by its owner.
func parseDelegation(s string) (d delegation, err error) {
	text, found := strings.CutPrefix(s, delegationPrefix)
	if !found || len(s) > delegationBytesMax {
		return d, errDelegation
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return d, errDelegation
	}
	r := wire.NewReader(b)
	d = delegation{Chain: r.String(ledger.ChainIDBytesMax), Run: r.String(ledger.RunNameBytesMax), Node: key.Public(r.Hash()), Certificate: ledger.ReadCertificate(&r)}
	if r.Done() != wire.OK || !d.Certificate.Valid(d.Chain, d.Run, d.Node) {
		return delegation{}, errDelegation
	}
	return d, nil
}

// readDelegation reads one that is given as text, or by a file that holds it.
func readDelegation(arg string) (delegation, error) {
	if !strings.HasPrefix(arg, delegationPrefix) {
		b, err := atomicfile.ReadBounded(arg, delegationBytesMax)
		if errors.Is(err, fs.ErrNotExist) {
			return delegation{}, fmt.Errorf("%q is no delegation, which begins with %s, nor a file that holds one", arg, delegationPrefix)
		}
		if err != nil {
			return delegation{}, fmt.Errorf("delegation: %w", err)
		}
		arg = string(bytes.TrimSpace(b))
	}
	return parseDelegation(arg)
}

// expires is when the node stops working for its owner.
func (d delegation) expires() time.Time { return time.UnixMilli(int64(d.Certificate.ExpiresMs)) }

// check says whether the delegation is of use to a node in a run.
func (d delegation) check(chain, run string, node key.Public, now time.Time) error {
	switch {
	case d.Chain != chain || d.Run != run:
		return fmt.Errorf("the delegation is for run %q of chain %q, not for run %q of chain %q", d.Run, d.Chain, run, chain)
	case d.Node != node:
		return fmt.Errorf("the delegation is for the node %s, and this is %s: name its key with --key FILE, or ask for a delegation of this one", d.Node, node)
	case !now.Before(d.expires()):
		return fmt.Errorf("the delegation has expired at %s; ask its owner for another", d.expires().Format(time.RFC3339))
	}
	return nil
}

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
			case !ledger.RunNameValid(run):
				return fmt.Errorf("--run %q is no run's name: say in which run the node works for you", run)
			case !ledger.ChainIDValid(chain):
				return fmt.Errorf("--chain-id %q is no chain's: say which chain the run is on; entrain status shows its name", chain)
			case last <= 0 || last.Milliseconds() > ledger.DelegationMsMax:
				return fmt.Errorf("--for %s: want more than nothing and at most %d days", last, ledger.DelegationMsMax/(24*3600*1000))
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
			d := delegation{Chain: chain, Run: run, Node: node}
			d.Certificate = ledger.NewCertificate(owner, chain, run, node, uint64(time.Now().Add(last).UnixMilli()))
			c.say("node %s works for %s in run %q until %s", node, owner.Public(), run, d.expires().Format(time.RFC3339))
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
			d, err := readDelegation(args[0])
			if err != nil {
				return err
			}
			err = c.act(cmd.Context(), a, func(client ledger.Chain, node key.Public) (ledger.Body, error) {
				return ledger.Delegate{Run: d.Run, Certificate: d.Certificate}, d.check(client.ChainID(), d.Run, node, time.Now())
			})
			if err != nil {
				return fmt.Errorf("bring a delegation: %w", err)
			}
			c.say("works for %s in run %q until %s", d.Certificate.Owner, d.Run, d.expires().Format(time.RFC3339))
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
			err = c.act(cmd.Context(), a, func(ledger.Chain, key.Public) (ledger.Body, error) {
				return ledger.Revoke{Run: args[0], Node: node}, nil
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

// bring brings the participant's delegation to the ledger, if it has one.
func (p *participation) bring(ctx context.Context, client ledger.Chain) error {
	if p.delegation == "" {
		return nil
	}
	d, err := readDelegation(p.delegation)
	if err == nil {
		err = d.check(client.ChainID(), p.run, p.key.Public(), time.Now())
	}
	if err != nil {
		return err
	}
	if err := submit(ctx, client.As(p.key), ledger.Delegate{Run: p.run, Certificate: d.Certificate}); err != nil {
		return fmt.Errorf("bring the delegation to the chain: %w", err)
	}
	p.log.Info("works for an owner", "owner", d.Certificate.Owner, "until", d.expires())
	return nil
}
