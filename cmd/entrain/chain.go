package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/founding"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/verify"
)

func chainCommand(c console) *cobra.Command {
	return group("chain", "Run a replica of the chain that hosts runs",
		`The coordinators of runs live on a chain: a replicated state machine that survives crashes, and lying
replicas once there are four or more. One replica is a chain already.

docs/operators.md says how strangers run one together.`,
		chainInitCommand(c), chainStartCommand(c), chainShowCommand(c), chainSeatCommand(c))
}

// homeFlag adds --home.
func (c console) homeFlag(cmd *cobra.Command, to *string) {
	def := ""
	if c.places.Data != "" {
		def = filepath.Join(c.places.Data, "chain")
	}
	cmd.Flags().StringVar(to, "home", def, "`directory` of the replica")
	_ = cmd.MarkFlagDirname("home")
}

var errNoHome = errors.New("this system names no directory for data; say where the replica is with --home DIR")

const aboutChainInit = `Sets up a directory with the settings, the genesis and the keys of a replica. With --chain-id this founds a
new chain, of which this replica is the first; with URLs, or with --genesis FILE, it follows an existing one.

The genesis of a new chain makes all its tokens, 1,000,000,000 by default. They belong to your key,
which is created if there is none. --allocate gives tokens to others; the rest of --supply is yours.

Only this machine reaches the chain unless you say with --public at which name or address others reach the
replica: clients at port 7370, other replicas at 26656. Once it runs, entrain chain show prints what they
need. With --public once for each of N machines, it makes the homes of N replicas that begin the chain
together, in the subdirectories replica-1 to replica-N: move each to its machine. With --replicas N all of
them run on this machine. Four go on when one of them fails or lies.

With URLs of replicas it takes the genesis and the addresses of the others from them. The first start fetches
the chain's present state, checked by the signatures of the chain's replicas. Name a header that you believe
after the URL, as #HEIGHT:HASH, from somebody you trust who ran entrain chain show. It is needed when the
chain is older than five days. Before, the genesis is enough, which is believed as the URLs serve it: compare
the hash that is printed with what you were told. The new replica follows the chain and serves clients. It
votes on blocks when it has a seat: see entrain chain seat. The addresses can be changed later in chain.json.

Runs can live on Solana instead. With solana:URL and PROGRAM, the file chain/solana/bin/entrain.so of make
solana, it puts the coordinator on that cluster, in some 1,000 transactions and, for its rent, about 6.2 SOL
of your key. When it breaks off, the same command goes on. Your key can replace the program. Once you trust
it, give that power to nobody: solana program set-upgrade-authority PROGRAM --final. With --supply it makes
a token of Solana for runs, all yours and without decimals, of which nobody can make more or freeze any; a
key has one. Any other token of the SPL program will do as well: write its mint behind the program. Other
commands take the address that is printed, as --chain solana:URL#PROGRAM or solana:URL#PROGRAM:MINT. Your
key is an account of Solana as it is, and pays in SOL. docs/chains.md says what Solana gives and costs.`

func chainInitCommand(c console) *cobra.Command {
	var o founding.Replica
	var keyFile string
	cmd := &cobra.Command{
		Use:   "init [URL... | solana:URL PROGRAM]",
		Short: "Set up a new chain, a replica of an existing one, or runs on Solana",
		Long:  aboutChainInit,
		Example: `  entrain chain init --chain-id my-chain
  entrain chain init --chain-id my-chain --public a.example.org --creator $(entrain key)
  entrain chain init --chain-id my-chain --supply 5000000 --allocate 1f0c...e2=1000000
  entrain chain init --chain-id my-chain --replicas 4 --home ./chain
  entrain chain init --chain-id my-chain --public a.example.org --public b.example.org --public c.example.org --public d.example.org
  entrain chain init https://a.example.org --public me.example.org
  entrain chain init https://a.example.org#81722:9f3c...01 https://b.example.org
  entrain chain init --genesis genesis.json --peer 3f2a...@203.0.113.5:26656
  entrain chain init solana:https://api.devnet.solana.com chain/solana/bin/entrain.so --supply 1000000
  entrain chain init solana:https://api.devnet.solana.com#6NxF...9p --supply 1000000`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, urls []string) error {
			if len(urls) > 0 && strings.HasPrefix(urls[0], "solana:") {
				return c.initSolana(cmd, keyFile, urls)
			}
			if len(o.Allocate) > 0 && !cmd.Flags().Changed("supply") {
				o.Supply = 0 // just what is allocated
			}
			if !cmd.Flags().Changed("bond") {
				o.Bond = o.Supply / 1000
			}
			o.Owner = func(make bool) (key.Public, error) {
				path, err := c.keyPath(keyFile)
				if _, missing := os.Stat(path); err != nil || errors.Is(missing, fs.ErrNotExist) && !make {
					return key.Public{}, err
				}
				k, _, err := c.ownKey(keyFile)
				return k.Public(), err
			}
			if o.Home == "" {
				return errNoHome
			}
			if len(urls) > 0 {
				return c.chainFollow(cmd.Context(), o, urls)
			}
			places, err := o.Init()
			if err != nil {
				return err
			}
			for _, p := range places {
				c.say("set up a replica in %s; start it with: entrain chain start --home %q", p.Dir, p.Dir)
			}
			return nil
		},
	}
	c.replicaFlags(cmd, &o)
	keyFlag(cmd, &keyFile)
	return cmd
}

// replicaFlags adds the flags of chain init.
func (c console) replicaFlags(cmd *cobra.Command, o *founding.Replica) {
	c.homeFlag(cmd, &o.Home)
	f := cmd.Flags()
	f.StringVar(&o.ID, "chain-id", "", "`name` of the chain: a-z, 0-9 and -")
	f.StringVar(&o.Genesis, "genesis", "", "genesis `file` of an existing chain")
	f.StringVar(&o.API, "api", "", "`IP:PORT` where the replica listens for clients (default "+comet.DefaultAPI+", with --public 0.0.0.0:7370)")
	f.StringArrayVar(&o.Public, "public", nil, "`HOST` or HOST:PORT at which other machines reach it, where PORT is the one for replicas (default 26656); once for each replica of a new chain")
	f.StringArrayVar(&o.Creators, "creator", nil, "public `key` that may create runs; may be repeated (default: anyone may)")
	f.StringArrayVar(&o.Peers, "peer", nil, "another replica, as `ID@HOST:PORT`; may be repeated (default: what the URLs say)")
	f.Uint64Var(&o.Supply, "supply", defaultSupply, "`tokens` of the new chain in all; with --allocate only, as many as those")
	f.StringArrayVar(&o.Allocate, "allocate", nil, "`KEY=AMOUNT` of the new chain's tokens; may be repeated")
	f.IntVar(&o.Replicas, "replicas", 0, "`number` of replicas that begin the new chain (default: one for each --public, at least one)")
	f.Uint64Var(&o.Bond, "bond", 0, "`tokens` behind each replica, besides --supply: it loses them if it votes twice, and they give its votes weight (default a 1000th of the supply)")
	f.DurationVar(&o.Block, "block", comet.DefaultBlock, "`time` between blocks, and so the resolution of all deadlines")
}

// chainFollow sets up a replica of the chain that is served at URLs.
func (c console) chainFollow(ctx context.Context, f founding.Replica, urls []string) error {
	o, err := f.Follow(ctx, urls)
	if err != nil {
		return err
	}
	c.say("set up a replica of chain %s in %s; its genesis has hash %s\nstart it with: entrain chain start --home %q",
		o.Chain, f.Home, comet.GenesisHash(o.Genesis), f.Home)
	return nil
}

// defaultSupply is how many tokens a new chain has unless told otherwise.
const defaultSupply = 1_000_000_000

// genesisName is the file that makes a directory a replica's.
const genesisName = "genesis.json"

func chainStartCommand(c console) *cobra.Command {
	var home string
	var asJSON bool
	var log participant.Logging
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run the replica until Ctrl-C",
		Long: `Runs the replica until Ctrl-C. It never loses what is in a block, even after kill -9 or a power cut;
the next start continues.`,
		Example: "  entrain chain start\n  entrain chain start --home ./replica --log info",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if home == "" {
				return errNoHome
			}
			if !cmd.Flags().Changed("with-parent") { // a parent knows its own replicas
				c.own(home) // before it can fail: a stranger at its port is not meant either
			}
			replica, err := comet.Open(home, log.Logger(c.err), referees)
			if err != nil {
				if _, missing := os.Stat(filepath.Join(home, genesisName)); errors.Is(missing, fs.ErrNotExist) {
					return fmt.Errorf("%w, with: entrain chain init --home %q --chain-id NAME", err, home)
				}
				return err
			}
			if err := c.announce(asJSON, chainEvent{Event: "listening", Chain: replica.Chain(), Endpoint: replica.Endpoint()},
				"chain %s: clients reach this replica at %s; Ctrl-C ends it", replica.Chain(), replica.Endpoint()); err != nil {
				return err
			}
			return replica.Run(cmd.Context())
		},
	}
	c.homeFlag(cmd, &home)
	jsonFlag(cmd, &asJSON)
	logFlag(cmd, &log)
	return cmd
}

// chainEvent is what chain start --json prints.
type chainEvent struct {
	Event    string `json:"event"`
	Chain    string `json:"chain"`
	Endpoint string `json:"endpoint"`
}

// referees judge the disputes of the runs that this program's replicas host.
var referees host.Referees = verify.NewReferee
