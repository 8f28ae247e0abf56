package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	chain "github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/chain/solana/local"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key/keyfile"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/solana"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/verify"
)

const (
	// Solana is the value of Settings.Chain for a cluster of Solana.
	Solana = "solana"

	// lamports is what each key gets for fees and rent: 100 SOL.
	lamports = 100_000_000_000
	// solanaBlock is the time between blocks, a quarter of Solana's.
	solanaBlock = 100 * time.Millisecond
)

// programAt is where the demo's cluster has the program.
var programAt = chain.Program{'e', 'n', 't', 'r', 'a', 'i', 'n'}

// getenv reads a variable of the children's environment.
func (o Options) getenv(name string) string {
	for _, v := range o.Env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// place returns where the run is on the demo's cluster.
func (d *directory) place() (p solana.Place, err error) {
	owner, err := keyfile.Load(d.file("owner.key"), nil)
	if err != nil {
		return p, err
	}
	return solana.Place{Endpoint: "http://" + d.set.API, Program: programAt, Mint: chain.MintAt(chain.Address(owner.Public()))}, nil
}

// cluster returns the child that is the cluster. It keeps its accounts over restarts.
func (d *demo) cluster() (child, error) {
	folder, err := local.Programs(d.getenv)
	if err != nil {
		return child{}, fmt.Errorf("a cluster of Solana: %w", err)
	}
	args, err := local.Command(local.Options{
		Listen: d.dir.set.API, Program: programAt, Folder: folder, Block: solanaBlock, Keep: d.dir.file("solana.sqlite"),
	})
	if err != nil {
		return child{}, err
	}
	return child{name: chainName, program: args[0], args: args[1:]}, nil
}

// dialCluster connects to the cluster. Until there is a run on it, it gives all participants SOL
// and tokens.
func dialCluster(ctx context.Context, dir *directory) (ledger.Chain, error) {
	at, err := dir.place()
	if err != nil {
		return nil, err
	}
	c, err := solana.NewClient(ctx, solana.Options{Program: at.Program, Mint: at.Mint, Endpoints: []string{at.Endpoint}, Rules: verify.Rules})
	if err != nil {
		return nil, err
	}
	runs, err := c.Runs(ctx)
	if err == nil && len(runs) == 0 {
		err = endow(ctx, c, dir)
	}
	return c, err
}

// endow gives all keys what a genesis would.
func endow(ctx context.Context, c *solana.Client, dir *directory) error {
	owner, err := keyfile.Load(dir.file("owner.key"), nil)
	if err != nil {
		return err
	}
	errs := []error{c.Airdrop(ctx, owner.Public(), lamports)}
	if _, err := c.NewToken(ctx, owner, supply); err != nil {
		errs = append(errs, err)
	}
	l := c.As(owner)
	for _, name := range dir.participants() {
		k, err := keyfile.Load(dir.file(name, "key"), nil)
		if err == nil {
			err = errors.Join(c.Airdrop(ctx, k.Public(), lamports), onchain.Submit(ctx, l, host.Transfer{To: k.Public(), Amount: stake}))
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("give the participants tokens: %w", err)
	}
	return nil
}
