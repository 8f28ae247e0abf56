package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/key/keyfile"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/onchain"
)

// creation is the result of creating the run.
type creation struct {
	chain ledger.Chain // nil if it cannot be reached
	err   error
}

// create creates the run unless an earlier demo did, and funds it. It returns a client of the
// chain.
func create(ctx context.Context, dir *directory) (ledger.Chain, error) {
	chain, err := dial(ctx, dir)
	if err != nil {
		return chain, err
	}
	runs, err := chain.Runs(ctx)
	if err != nil || len(runs) > 0 {
		return chain, err
	}
	owner, err := keyfile.Load(dir.file("owner.key"), nil)
	if err != nil {
		return chain, err
	}
	return chain, found(ctx, chain.As(owner), owner.Public(), dir)
}

// dial connects to the chain.
func dial(ctx context.Context, dir *directory) (ledger.Chain, error) {
	if dir.set.Chain == Solana {
		return dialCluster(ctx, dir)
	}
	client, err := comet.NewClient(runName, []string{"http://" + dir.set.API}, nil)
	if err != nil {
		return nil, err
	}
	return client, nil
}

// found creates and funds the run. One with cheats is paused until all clients are members: it does
// not wait for all of them in later epochs, when it may have dropped or ejected some.
func found(ctx context.Context, l ledger.Ledger, owner key.Public, dir *directory) error {
	hash, err := dir.spec.ModelHash()
	if err != nil {
		return err
	}
	limits, config := dir.spec.Coordinator(owner, hash, host.SpecHash(dir.text))
	bodies := []host.Body{
		host.CreateRun{Limits: limits, Config: config, Spec: dir.text},
		host.RunMessage{Run: runName, Value: treasury, Message: coordinator.Append(nil, coordinator.Fund{})},
	}
	if dir.set.cheats() > 0 {
		bodies = append(bodies, host.ToRun(runName, coordinator.Pause{}))
	}
	for _, body := range bodies {
		err := onchain.Submit(ctx, l, body)
		var refused *host.TxError
		if errors.As(err, &refused) && refused.Code == host.CodeRunExists {
			return nil
		}
		if err != nil {
			return fmt.Errorf("create the run: %w", err)
		}
	}
	return nil
}

// resume begins a run that create has paused.
func resume(ctx context.Context, chain ledger.Chain, dir *directory) error {
	owner, err := keyfile.Load(dir.file("owner.key"), nil)
	if err == nil {
		err = onchain.Submit(ctx, chain.As(owner), host.ToRun(runName, coordinator.Resume{}))
	}
	if err != nil {
		return fmt.Errorf("begin the run: %w", err)
	}
	return nil
}
