package solana

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/key"
)

const (
	// deployAtOnce is how many parts of a program are under way at a time.
	deployAtOnce = 16
	// deployUnits is more than the loader needs for a part.
	deployUnits = 10_000
)

// Deploy puts a program on the cluster and returns its address. The key pays, and alone can replace
// the program later. The same key and file give the same address, so that a call after one that
// broke off goes on. Tell gets the bytes that are there, of all.
func (c *Client) Deploy(ctx context.Context, k key.Private, file []byte, tell func(done, all int)) (solana.Program, error) {
	a := &acting{Client: c, signer: solana.NewSigner(k)}
	d := solana.NewDeployment(a.signer, file)
	_, list, err := a.accounts(ctx, nil, solana.Address(d.Program()), d.Buffer())
	if err != nil || list[0] != nil && list[0].Executable {
		return d.Program(), err
	}
	if !bytes.HasPrefix(file, []byte("\x7fELF")) {
		return d.Program(), errors.New("the file is no program of Solana's: make solana builds chain/solana/bin/entrain.so")
	}
	if err := a.pays(ctx, d, list[1], len(file)); err != nil {
		return d.Program(), err
	}
	written := make([]byte, len(file))
	if b := list[1]; absent(b) {
		rent, err := a.rent(ctx, d.BufferBytes())
		if err == nil {
			err = a.send(ctx, d.Begin(rent))
		}
		if err != nil {
			return d.Program(), err
		}
	} else if len(b.Data) >= solana.BufferHeader {
		copy(written, b.Data[solana.BufferHeader:])
	}
	if err := a.upload(ctx, d, file, written, tell); err != nil {
		return d.Program(), err
	}
	rent, err := a.rent(ctx, d.ProgramBytes())
	if err != nil {
		return d.Program(), err
	}
	end, err := d.End(rent)
	if err != nil {
		return d.Program(), err
	}
	if err := a.send(ctx, end); err != nil {
		return d.Program(), fmt.Errorf("make the program of what was uploaded: %w", err)
	}
	return d.Program(), nil
}

// pays refuses a deployment of some bytes that the key has too little SOL for: to find out after
// most of it was uploaded would leave its rent there.
func (a *acting) pays(ctx context.Context, d solana.Deployment, buffer *account, size int) error {
	takes := solana.Rent(d.ProgramBytes()) + uint64(size/solana.DeployPart+20)*solana.SignatureFee
	if absent(buffer) {
		takes += solana.Rent(d.BufferBytes())
	}
	_, list, err := a.accounts(ctx, nil, a.signer.Address())
	if err == nil && (list[0] == nil || list[0].Lamports < takes) {
		err = a.short(list[0], fmt.Sprintf("the %s that this takes, nearly all of it rent", inSOL(takes)))
	}
	return err
}

// upload writes the parts of a file that are not there yet.
func (a *acting) upload(ctx context.Context, d solana.Deployment, file, written []byte, tell func(done, all int)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // guards what follows
	var errs []error
	done := 0
	parts := make(chan int)
	var workers sync.WaitGroup
	for range deployAtOnce {
		workers.Go(func() {
			for at := range parts {
				part := file[at:min(at+solana.DeployPart, len(file))]
				var err error
				if !bytes.Equal(written[at:at+len(part)], part) {
					err = a.insist(ctx, func() error {
						in := []solana.Instruction{d.Write(at, part)}
						price, err := a.price(ctx, in)
						if err != nil {
							return err
						}
						return a.settle(ctx, []solana.Signer{a.signer}, deployUnits, price, in)
					})
				}
				mu.Lock()
				if done += len(part); err == nil {
					tell(done, len(file))
				} else if cancel(); len(errs) == 0 {
					errs = append(errs, err)
				}
				mu.Unlock()
			}
		})
	}
	for at := 0; at < len(file) && ctx.Err() == nil; at += solana.DeployPart {
		parts <- at
	}
	close(parts)
	workers.Wait()
	return errors.Join(append(errs, context.Cause(ctx))...)
}

// Airdrop gives a key SOL, in a 1,000,000,000th of it, on a cluster for trying things out.
func (c *Client) Airdrop(ctx context.Context, to key.Public, lamports uint64) error {
	var signature string
	return c.call(ctx, &signature, "requestAirdrop", solana.Address(to), lamports)
}

// Found puts a program on the cluster at p, unless the file is nil, and makes the key's token,
// unless the supply is 0. P then names both. Say is told how far it has come.
func (p *Place) Found(ctx context.Context, k key.Private, file []byte, supply uint64, say func(format string, args ...any)) error {
	client, err := NewClient(ctx, Options{Program: p.Program, Endpoints: []string{p.Endpoint}})
	if err != nil {
		return err
	}
	defer client.Close()
	if file != nil {
		percent := 0
		p.Program, err = client.Deploy(ctx, k, file, func(done, all int) {
			if now := 100 * done / all; now >= percent+10 || done == all {
				percent = now
				say("%d %% of %d bytes", now, all)
			}
		})
		if err != nil {
			return fmt.Errorf("deploy the program: %w", err)
		}
	}
	if supply > 0 {
		if p.Mint, err = client.NewToken(ctx, k, supply); err != nil {
			return fmt.Errorf("make a token: %w", err)
		}
	}
	return nil
}

// NewToken makes the key's token, unless it is there, and returns its mint. The key gets all of
// the supply.
func (c *Client) NewToken(ctx context.Context, k key.Private, supply uint64) (solana.Address, error) {
	a := &acting{Client: c, signer: solana.NewSigner(k)}
	mint := solana.MintAt(a.signer.Address())
	_, list, err := a.accounts(ctx, nil, mint)
	if err != nil || !absent(list[0]) {
		return mint, err
	}
	rent, err := a.rent(ctx, solana.MintBytes)
	if err != nil {
		return mint, err
	}
	token, err := solana.NewToken(a.signer.Address(), rent, supply)
	if err != nil {
		return mint, err
	}
	return mint, a.send(ctx, token)
}
